"""Filters, ledgers, allocators, links and noise against closed forms."""

import math
import statistics
import threading

import numpy
import pytest

import lapa


def test_a_filter_holds_its_budget_and_says_what_was_spent():
    filter = lapa.Filter(epsilon=8, delta=1e-5)
    sigma = filter.sigma_for(filter.capacity / 10)
    # 1/z² is μ² of a Gaussian release.
    assert math.isclose(filter.cost(sigma), 1 / sigma**2, rel_tol=1e-9)
    released = 0
    while (cost := filter.request(filter.capacity / 10, filter.capacity / 20)) > 0:
        filter.charge(filter.cost(filter.sigma_for(cost)))
        released += 1
    assert released == 10 and filter.left < filter.capacity / 20
    expected = lapa.account(sigma, 10, delta=1e-5)["gdp"]
    assert math.isclose(filter.spent_epsilon(), expected, rel_tol=1e-6)
    assert (filter.epsilon, filter.delta, filter.kind) == (8, 1e-5, "gdp")
    assert "GDP" in filter.theorem


def test_renyi_filters_and_plans():
    renyi = lapa.Filter(8, 1e-5, order=8.0)
    # Rényi divergence of a Gaussian: α/(2z²).
    assert math.isclose(renyi.cost(2.0), 8.0 / (2 * 4.0), rel_tol=1e-9) and renyi.kind == "renyi"
    plan = lapa.Filter.plan(8, 1e-5, 150, sampling_rate=0.1)
    sigma = plan.sigma_for(1.0, sampling_rate=0.1)
    expected = lapa.calibrate(8, 1e-5, 150, sampling_rate=0.1)
    assert math.isclose(sigma, expected, rel_tol=1e-9)
    assert (plan.capacity, plan.kind, plan.request(1.0)) == (150, "plan", 1.0)


def test_a_ledger_outlives_the_process_and_refuses_what_does_not_fit(tmp_path):
    path = tmp_path / "ledger.db"
    filter = lapa.Filter(epsilon=2, delta=1e-5)
    ledger = lapa.Ledger(path)
    assert ledger.begin("a", {0: filter, 1: filter}) == {0: filter.capacity, 1: filter.capacity}
    sigma = filter.sigma_for(filter.capacity / 2)
    for number in (1, 2):
        ledger.charge("a", number, 0, sigma=sigma)
    with pytest.raises(lapa.Refused):
        ledger.charge("a", 3, 0, sigma=sigma)
    ledger.charge("a", 3, 1, sigma=sigma)
    del ledger
    again = lapa.Ledger(path, read_only=True)
    charged = [(release["device"], release["round"]) for release in again.releases()]
    assert charged == [(0, 1), (0, 2), (1, 3)] and again.path == path
    spent = {declared["device"]: declared["spent"] for declared in again.declarations()}
    assert math.isclose(spent[1], filter.capacity / 2, rel_tol=1e-9)
    other = lapa.Ledger(path)
    left = other.begin("b", {0: filter, 1: filter})
    assert left[0] < 1e-6 * filter.capacity and math.isclose(left[1], filter.capacity / 2, rel_tol=1e-9)


def test_a_ledger_takes_releases_on_samples(tmp_path):
    ledger = lapa.Ledger(tmp_path / "ledger.db")
    filter = lapa.Filter(8, 1e-5, order=8.0)
    ledger.begin("run", {0: filter})
    cost = ledger.charge("run", 1, 0, sigma=1.0, sampling_rate=0.1)
    assert cost == filter.cost(1.0, sampling_rate=0.1)


def test_costs_of_two_adjacencies_do_not_add_up(tmp_path):
    ledger = lapa.Ledger(tmp_path / "ledger.db")
    filter = lapa.Filter(8, 1e-5, order=8.0)
    ledger.begin("a", {0: filter}, adjacency="add-remove")
    ledger.charge("a", 1, 0, sigma=1.0, sampling_rate=0.1)
    assert ledger.releases()[0]["event"]["adjacency"] == "add-remove"
    with pytest.raises(lapa.LedgerError, match="add-remove"):
        ledger.begin("b", {0: filter})
    with pytest.raises(ValueError, match="adjacency = "):
        ledger.begin("b", {0: filter}, adjacency="near")


def test_threads_that_begin_and_charge_do_not_wait_for_each_other(tmp_path):
    ledger, filter = lapa.Ledger(tmp_path / "ledger.db"), lapa.Filter(8, 1e-5)
    ledger.begin("a", {0: filter})

    def begin():
        for number in range(100):
            ledger.begin(f"run {number}", {0: filter})

    def charge():
        for number in range(1, 101):
            ledger.charge("a", number, 0, sigma=100.0)

    threads = [threading.Thread(target=work, daemon=True) for work in (begin, charge, begin)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120.0)
    assert not any(thread.is_alive() for thread in threads)
    assert len(ledger.releases()) == 100


def test_a_run_that_is_refused_goes_on_as_it_began(tmp_path):
    ledger = lapa.Ledger(tmp_path / "ledger.db")
    ledger.begin("a", {0: lapa.Filter(8, 1e-5)})
    with pytest.raises(lapa.LedgerError):
        ledger.begin("a", {0: lapa.Filter(8, 1e-5, order=8.0)})
    # In the currency of its own filter: μ² of z = 2, not a Rényi divergence.
    assert math.isclose(ledger.charge("a", 1, 0, sigma=2.0), 1 / 4, rel_tol=1e-9)


@pytest.mark.parametrize("name", ["lapa", "uniform", "arb"])
def test_allocators_never_pass_what_is_left(name):
    rounds, left = 20, {0: 1.0, 1: 0.5}
    allocator = lapa.Allocator(name, rounds=rounds, devices=2)
    twin = lapa.Allocator(name, rounds=rounds, devices=2)
    draw = numpy.random.default_rng(7)
    for number in range(1, rounds + 1):
        costs = allocator.allocate(number, left)
        assert costs == twin.allocate(number, left)
        for device, cost in costs.items():
            assert 0 < cost <= left[device]
            left[device] -= cost
        gradients = {device: draw.normal(size=50).astype(numpy.float32) for device in left}
        weights, sigmas = {0: 0.25, 1: 0.75}, {0: 0.1, 1: 0.1}
        allocator.observe(number, gradients, weights=weights, sigmas=sigmas)
        # A twin that is begun anew from the state decides the same.
        twin = lapa.Allocator(name, rounds=rounds, devices=2)
        twin.restore(allocator.state())
    assert allocator.name == name
    if name == "uniform":
        assert max(left.values()) < 1e-12


def test_the_paper_s_allocators_share_one_epsilon():
    uniform = lapa.Allocator("uniform", rounds=10, devices=4, epsilon=8.0)
    costs = uniform.allocate(1, {device: 0.0 for device in range(4)})
    assert all(math.isclose(cost, 8 / 40) for cost in costs.values())
    split = lapa.Allocator("optimal-split", rounds=10, devices=2, epsilon=8.0)
    costs = split.allocate(1, {0: 0.0, 1: 0.0}, weights={0: 0.9, 1: 0.1})
    assert costs[0] > costs[1] and sum(costs.values()) <= 0.8 * (1 + 1e-12)


def test_links_fall_with_distance():
    links = lapa.link()
    assert len(set(map(len, links.values()))) == 1
    pairs = sorted(zip(links["distance_m"], links["path_loss_db"]))
    losses = [loss for _, loss in pairs]
    assert losses == sorted(losses)
    assert all(0 <= ser <= 1 for ser in links["ser"])


def test_noise_has_its_standard_deviation():
    """χ² with n degrees: five standard deviations, α below 1e-6."""
    n, sigma = 200_000, 0.3
    noise = lapa.clip_and_noise(numpy.zeros(n), clip_norm=1, sigma=sigma, seed=5)
    ratio = statistics.fmean(float(value) ** 2 for value in noise) / sigma**2
    assert abs(ratio - 1) < 5 * math.sqrt(2 / n)
    same = lapa.clip_and_noise(numpy.zeros(n), clip_norm=1, sigma=sigma, seed=5)
    other = lapa.clip_and_noise(numpy.zeros(n), clip_norm=1, sigma=sigma)
    assert numpy.array_equal(noise, same) and not numpy.array_equal(noise, other)


def test_clipping_is_that_of_numpy():
    draw = numpy.random.default_rng(3)
    rows = draw.normal(size=(40, 30)).astype(numpy.float32) * draw.uniform(0, 0.5, (40, 1))
    rows[7] = numpy.nan
    ours = lapa.clip_and_noise(rows, clip_norm=1.0, sigma=0.0, denominator=20.0)
    kept = rows[~numpy.isnan(rows).any(axis=1)].astype(numpy.float64)
    norms = numpy.linalg.norm(kept, axis=1, keepdims=True)
    expected = (kept * numpy.minimum(1, 1 / norms)).sum(axis=0) / 20
    assert numpy.allclose(ours, expected, rtol=1e-4, atol=1e-6)
    whole = lapa.clip_and_noise(10 * rows[0], clip_norm=0.5, sigma=0.0)
    assert 0.4999 < numpy.linalg.norm(whole) <= 0.5


def test_a_gradient_that_is_not_finite_counts_as_zero():
    for value in (numpy.nan, numpy.inf):
        broken = numpy.array([1.0, value, 3.0])
        same = lapa.clip_and_noise(numpy.zeros(3), clip_norm=1.0, sigma=2.0, seed=9)
        assert numpy.array_equal(lapa.clip_and_noise(broken, clip_norm=1.0, sigma=2.0, seed=9), same)
    for norm in (0.0, numpy.nan, numpy.inf):
        with pytest.raises(lapa.LapaError, match="clip_norm"):
            lapa.clip_and_noise(numpy.full((1, 2), numpy.nan), clip_norm=norm, sigma=2.0, denominator=1.0)


def test_mean_and_noise_are_rounded_once():
    n, sigma, mean = 1000, 0.3, 2.0**24 / 3
    noise = lapa.clip_and_noise(numpy.zeros(n), clip_norm=1.0, sigma=sigma, seed=4).astype(numpy.float64)
    sums = lapa.clip_and_noise(numpy.full((1, n), 2.0**24), clip_norm=1e10, sigma=sigma, denominator=3.0, seed=4)
    # The nearest numbers of float32 are half apart here; a mean that was rounded first is off by a sixth.
    assert numpy.mean(sums == (mean + noise).astype(numpy.float32)) > 0.999
    assert numpy.mean(sums == (numpy.float32(mean).astype(numpy.float64) + noise).astype(numpy.float32)) < 0.9
