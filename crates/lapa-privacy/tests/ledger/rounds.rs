//! One process: granting, charging, repeating, refusing.

use super::*;

fn begun(capacity: f64) -> Ledger {
    let mut ledger = Ledger::in_memory().unwrap();
    let devices = [(0, budget(capacity)), (7, budget(capacity))];
    assert_eq!(ledger.begin_run("run", &data(), &devices).unwrap(), [capacity, capacity]);
    ledger
}

#[test]
fn a_device_gets_what_it_asks_for_until_nothing_is_left() {
    let mut ledger = begun(1.0);
    let ask = |ledger: &mut Ledger, at| {
        round(ledger, ("run", at), Repeat::Replay, &[request(7, 0.375)]).unwrap().remove(0)
    };
    let whole = Grant::Released { granted: 0.375, cost: 0.375, event: event(0.375) };
    assert_eq!(ask(&mut ledger, 1), whole);
    assert_eq!(ask(&mut ledger, 2), whole);
    let rest = Grant::Released { granted: 0.25, cost: 0.25, event: event(0.25) };
    assert_eq!(ask(&mut ledger, 3), rest);
    assert_eq!(ask(&mut ledger, 4), Grant::Refused);
    assert_eq!(ledger.spent("data", 7).unwrap(), 1.0);
    assert_eq!(ledger.spent("data", 0).unwrap(), 0.0);
    assert_eq!(ledger.spent("data", 1).unwrap(), 0.0);
    assert_eq!(ledger.spent("other", 0).unwrap(), 0.0);
    assert_eq!(ledger.own_spent("run", 7, None).unwrap(), 1.0);
    assert_eq!(ledger.own_spent("run", 7, Some(3)).unwrap(), 0.75);
    assert_eq!(ledger.own_spent("run", 7, Some(1)).unwrap(), 0.0);

    let history = ledger.history("run", 7).unwrap();
    assert_eq!(history, ledger.releases().unwrap());
    assert!(ledger.history("run", 0).unwrap().is_empty());
    let seen: Vec<_> = history.iter().map(|r| (r.round, r.attempt, r.granted, r.cost)).collect();
    assert_eq!(seen, [(1, 1, 0.375, 0.375), (2, 1, 0.375, 0.375), (3, 1, 0.25, 0.25)]);
    assert_eq!(history[2].event, event(0.25));
    assert_eq!((&*history[2].data, &*history[2].partition), ("data", "partition"));
}

#[test]
fn less_than_the_floor_is_refused() {
    let mut ledger = begun(1.0);
    let mut ask = |round, floor, cost| {
        let requests = [request(0, cost)];
        let release = &mut |_, cost| Ok::<_, LedgerError>((event(cost), cost));
        record_round(&mut ledger, "run", round, Repeat::Replay, floor, &requests, release).unwrap()
    };
    assert_eq!(ask(1, 0.5, 0.25), [Grant::Refused]);
    assert_eq!(ask(2, 0.0, 0.0), [Grant::Refused]);
    assert_eq!(cost(&ask(3, 0.5, 0.5)[0]), 0.5);
    assert_eq!(cost(&ask(4, 0.5, 0.75)[0]), 0.5);
    // A replay decides as before, whatever the floor is now.
    assert_eq!(ask(1, 0.0, 0.25), [Grant::Refused]);
    assert_eq!(ledger.spent("data", 0).unwrap(), 1.0);
}

#[test]
fn a_cost_below_the_grant_leaves_the_rest() {
    let mut ledger = begun(1.0);
    for at in 1..=3 {
        let grants = record_round(
            &mut ledger,
            "run",
            at,
            Repeat::Replay,
            0.0,
            &[request(0, 1.0)],
            &mut |_, cost| Ok::<_, LedgerError>((event(cost), cost / 2.0)),
        )
        .unwrap();
        assert_eq!(cost(&grants[0]), 0.5f64.powi(at as i32));
    }
    assert_eq!(ledger.spent("data", 0).unwrap(), 0.875);
}

#[test]
fn a_seeded_repeat_is_the_same_release() {
    let mut ledger = begun(1.0);
    let requests = [request(0, 0.75), request(7, 2.0)];
    let first = round(&mut ledger, ("run", 1), Repeat::Replay, &requests).unwrap();
    let second = round(&mut ledger, ("run", 2), Repeat::Replay, &requests).unwrap();
    assert!(matches!(first[1], Grant::Released { granted: 1.0, .. }));
    assert_eq!(second[1], Grant::Refused);
    for _ in 0..3 {
        assert_eq!(round(&mut ledger, ("run", 1), Repeat::Replay, &requests).unwrap(), first);
        assert_eq!(round(&mut ledger, ("run", 2), Repeat::Replay, &requests).unwrap(), second);
    }
    assert_eq!(ledger.spent("data", 0).unwrap(), 1.0);
    assert_eq!(ledger.releases().unwrap().len(), 3);
}

#[test]
fn a_different_repeat_is_a_conflict() {
    let mut ledger = begun(1.0);
    let requests = [request(0, 0.25), request(7, 0.0)];
    round(&mut ledger, ("run", 3), Repeat::Replay, &requests).unwrap();

    // Another cost, of a release and of a refusal: by one bit.
    let conflict = |ledger: &mut Ledger, requests: &[Request]| {
        round(ledger, ("run", 3), Repeat::Replay, requests).unwrap_err()
    };
    let error = conflict(&mut ledger, &[request(0, 0.25f64.next_up())]);
    assert!(matches!(
        &error,
        LedgerError::Conflict { run, round: 3, device: 0, .. } if run == "run"
    ));
    let text = error.to_string();
    assert!(text.contains("cost 0.25 for"), "{text}");
    assert!(text.contains("cost 0.25000000000000006"), "{text}");
    let error = conflict(&mut ledger, &[request(7, f64::MIN_POSITIVE)]);
    assert!(matches!(error, LedgerError::Conflict { device: 7, .. }));

    // The same cost for another event.
    let mut other = |_, cost| Ok::<_, LedgerError>((event(cost * 2.0), cost));
    let again = record_round(&mut ledger, "run", 3, Repeat::Replay, 0.0, &requests, &mut other);
    let text = again.unwrap_err().to_string();
    for sigma in [sigma(&event(0.25)), sigma(&event(0.5))] {
        assert!(text.contains(&format!("sigma_artificial: {sigma:?}")), "{text}");
    }

    // A new device in a repeated round is charged, but not beside a conflict.
    round(&mut ledger, ("run", 4), Repeat::Replay, &[request(0, 0.25)]).unwrap();
    let both = [request(7, 0.5), request(0, 0.5)];
    round(&mut ledger, ("run", 4), Repeat::Replay, &both).unwrap_err();
    assert_eq!(ledger.spent("data", 7).unwrap(), 0.0);
    assert_eq!(ledger.spent("data", 0).unwrap(), 0.5);
    let both = [request(7, 0.5), request(0, 0.25)];
    round(&mut ledger, ("run", 4), Repeat::Replay, &both).unwrap();
    assert_eq!(ledger.spent("data", 7).unwrap(), 0.5);
    assert_eq!(ledger.spent("data", 0).unwrap(), 0.5);
}

#[test]
fn a_repeat_with_fresh_noise_is_charged_again() {
    let mut ledger = begun(1.0);
    for cost in [0.25, 0.5] {
        round(&mut ledger, ("run", 1), Repeat::ChargeAgain, &[request(0, cost)]).unwrap();
    }
    assert_eq!(ledger.spent("data", 0).unwrap(), 0.75);
    assert_eq!(ledger.own_spent("run", 0, None).unwrap(), 0.75);
    let attempts: Vec<_> =
        ledger.releases().unwrap().iter().map(|r| (r.attempt, r.granted)).collect();
    assert_eq!(attempts, [(1, 0.25), (2, 0.5)]);
    // Until nothing is left.
    let rest = round(&mut ledger, ("run", 1), Repeat::ChargeAgain, &[request(0, 0.5)]).unwrap();
    assert_eq!(cost(&rest[0]), 0.25);
    let none = round(&mut ledger, ("run", 1), Repeat::ChargeAgain, &[request(0, 0.5)]).unwrap();
    assert_eq!(none, [Grant::Refused]);
}

#[test]
fn a_run_cannot_change_how_it_repeats() {
    let mut ledger = begun(1.0);
    round(&mut ledger, ("run", 1), Repeat::ChargeAgain, &[request(0, 0.25)]).unwrap();
    // Fresh noise was drawn: a replay would be a second release, for free.
    let error = round(&mut ledger, ("run", 1), Repeat::Replay, &[request(0, 0.25)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "run run began with charge-again for repeated rounds, not with replay"
    );
    assert_eq!(ledger.spent("data", 0).unwrap(), 0.25);
}

#[test]
fn a_second_run_starts_from_what_is_left() {
    let mut ledger = begun(1.0);
    round(&mut ledger, ("run", 1), Repeat::Replay, &[request(0, 0.75)]).unwrap();

    let devices = [(7, budget(1.0)), (0, budget(1.0)), (8, budget(0.5))];
    assert_eq!(ledger.begin_run("second", &data(), &devices).unwrap(), [1.0, 0.25, 0.5]);
    let grants = round(
        &mut ledger,
        ("second", 1),
        Repeat::Replay,
        &[request(0, 0.5), request(7, 0.5), request(8, 0.75)],
    )
    .unwrap();
    assert_eq!(grants.iter().map(cost).collect::<Vec<_>>(), [0.25, 0.5, 0.5]);
    assert_eq!(ledger.own_spent("second", 0, None).unwrap(), 0.25);
    assert_eq!(ledger.own_spent("run", 0, None).unwrap(), 0.75);
    assert_eq!(ledger.spent("data", 0).unwrap(), 1.0);

    // Resumed, both get what was left when they began.
    assert_eq!(ledger.begin_run("second", &data(), &devices).unwrap(), [1.0, 0.25, 0.5]);
    let devices = [(7, budget(1.0)), (0, budget(1.0))];
    assert_eq!(ledger.begin_run("run", &data(), &devices).unwrap(), [1.0, 1.0]);

    // A run's own capacity counts: raised by its owner, or lowered below what is spent.
    let devices = [(0, budget(1.5)), (7, budget(0.25))];
    assert_eq!(ledger.begin_run("third", &data(), &devices).unwrap(), [0.5, 0.0]);
    // Other data has budgets of its own.
    let other = DataKey { data: "other".into(), partition: "another".into() };
    assert_eq!(ledger.begin_run("fourth", &other, &[(0, budget(1.0))]).unwrap(), [1.0]);

    let declared = ledger.declarations().unwrap();
    let seen = declared.iter().map(|d| {
        let device = *d.devices.start();
        assert_eq!(d.devices, device..=device);
        let before = ledger.spending_before(&d.run).unwrap().get(&device).copied();
        let (start, spent) = (before.unwrap_or_default(), ledger.spent(&d.data, device).unwrap());
        (&*d.data, device, &*d.run, d.budget.capacity, start, spent)
    });
    let seen: Vec<_> = seen.collect();
    assert_eq!(
        seen,
        [
            ("data", 0, "run", 1.0, 0.0, 1.0),
            ("data", 0, "second", 1.0, 0.75, 1.0),
            ("data", 0, "third", 1.5, 1.0, 1.0),
            ("data", 7, "run", 1.0, 0.0, 0.5),
            ("data", 7, "second", 1.0, 0.0, 0.5),
            ("data", 7, "third", 0.25, 0.5, 0.5),
            ("data", 8, "second", 0.5, 0.0, 0.5),
            ("other", 0, "fourth", 1.0, 0.0, 0.0),
        ]
    );
    let all = ledger.releases().unwrap();
    for (run, earlier) in [("run", 0), ("second", 1), ("third", 4), ("fourth", 4)] {
        let mut before = Vec::new();
        let keep = |entry| {
            before.push(entry);
            Ok::<_, LedgerError>(())
        };
        ledger.each_before(run, keep).unwrap();
        assert_eq!(before, all[..earlier], "{run}");
    }
}

#[test]
fn runs_that_do_not_fit_are_refused() {
    let mut ledger = begun(1.0);
    let devices = [(0, budget(1.0)), (7, budget(1.0))];
    let mut begin = |run: &str, data: &DataKey, devices: &[(u32, DeclaredBudget)]| {
        ledger.begin_run(run, data, devices).unwrap_err()
    };
    let dealt = DataKey { partition: "dealt anew".into(), ..data() };
    let error = begin("second", &dealt, &devices);
    assert!(matches!(&error, LedgerError::Partition { .. }));
    let text = error.to_string();
    assert!(text.contains("with partition partition, not dealt anew"), "{text}");

    for other in [
        DeclaredBudget { kind: "\"rdp\"".into(), ..budget(1.0) },
        DeclaredBudget { delta: 1e-6, ..budget(1.0) },
    ] {
        let error = begin("second", &data(), &[(1, budget(1.0)), (0, other.clone())]);
        assert!(matches!(&error, LedgerError::OtherFilter { device: 0, .. }));
        let text = error.to_string();
        for shown in [r#"kind {"filter":"gdp"} and delta 1e-5"#, &*other.kind] {
            assert!(text.contains(shown), "{text}");
        }
    }

    // A resumed run is the same run.
    let smaller = DeclaredBudget { epsilon: 4.0, ..budget(1.0) };
    for (data, devices, shown) in [
        (dealt, &devices[..], "data data and partition partition"),
        (data(), &devices[..1], "devices [0, 7]"),
        (data(), &[(0, budget(1.0)), (8, budget(1.0))], "devices [0, 8]"),
        (data(), &[(0, budget(1.0)), (7, budget(2.0))], "capacity 2"),
        (data(), &[(0, smaller), (7, budget(1.0))], "epsilon 4"),
    ] {
        let error = begin("run", &data, devices);
        assert!(matches!(&error, LedgerError::Resumed { .. }));
        assert!(error.to_string().contains(shown), "{error}");
    }

    let error = begin("second", &data(), &[(3, budget(1.0)), (3, budget(1.0))]);
    assert!(matches!(error, LedgerError::Twice { device: 3 }));
    for (name, bad) in [
        ("capacity", budget(f64::NAN)),
        ("capacity", budget(-1.0)),
        ("epsilon", DeclaredBudget { epsilon: 0.0, ..budget(1.0) }),
        ("delta", DeclaredBudget { delta: 0.0, ..budget(1.0) }),
        ("delta", DeclaredBudget { delta: 1.0, ..budget(1.0) }),
        ("delta", DeclaredBudget { delta: f64::NAN, ..budget(1.0) }),
    ] {
        let error = begin("second", &data(), &[(0, bad)]);
        assert!(matches!(error, LedgerError::Parameter { name: at, .. } if at == name));
    }
    // None of them left a trace.
    assert_eq!(ledger.declarations().unwrap().len(), 2);
}

#[test]
fn rounds_without_meaning_are_refused() {
    let mut ledger = begun(1.0);
    let mut ask = |run, at, requests: &[Request]| {
        round(&mut ledger, (run, at), Repeat::Replay, requests).unwrap_err()
    };
    assert!(matches!(ask("other", 1, &[request(0, 0.1)]), LedgerError::NotBegun { .. }));
    let error = ask("run", 1, &[request(0, 0.1), request(3, 0.1)]);
    assert!(matches!(error, LedgerError::UnknownDevice { device: 3, .. }));
    for cost in [f64::NAN, -0.1, f64::NEG_INFINITY] {
        let error = ask("run", 1, &[request(0, cost)]);
        assert!(matches!(error, LedgerError::Parameter { name: "cost", .. }));
    }
    let error = ask("run", 1, &[request(0, 0.1), request(0, 0.1)]);
    assert!(matches!(error, LedgerError::Twice { device: 0 }));

    for floor in [f64::NAN, -1.0] {
        let mut free = |_, _| Ok::<_, LedgerError>((event(0.1), 0.0));
        let requests = [request(0, 0.1)];
        let result =
            record_round(&mut ledger, "run", 1, Repeat::Replay, floor, &requests, &mut free);
        assert!(matches!(result, Err(LedgerError::Parameter { name: "floor", .. })));
    }
    assert!(matches!(ledger.own_spent("other", 0, None), Err(LedgerError::NotBegun { .. })));
    assert!(matches!(ledger.history("run", 3), Err(LedgerError::UnknownDevice { .. })));
    assert!(ledger.releases().unwrap().is_empty());
    assert_eq!(ledger.spent("data", 0).unwrap(), 0.0);
    // Nobody asks.
    assert!(round(&mut ledger, ("run", 1), Repeat::Replay, &[]).unwrap().is_empty());
}

/// A release before the first round is a round of its own.
#[test]
fn round_0_is_charged_and_repeated_like_any_other() {
    let mut ledger = begun(1.0);
    for _ in 0..2 {
        let grants = round(&mut ledger, ("run", 0), Repeat::Replay, &[request(0, 0.25)]).unwrap();
        assert!(matches!(grants[0], Grant::Released { cost: 0.25, .. }));
    }
    round(&mut ledger, ("run", 1), Repeat::Replay, &[request(0, 0.5)]).unwrap();
    assert_eq!(ledger.spent("data", 0).unwrap(), 0.75);
    assert_eq!(ledger.own_spent("run", 0, Some(1)).unwrap(), 0.25);
    assert_eq!(ledger.last_round("run").unwrap(), 1);
}

#[test]
fn a_release_that_cannot_be_charged_writes_nothing() {
    let mut ledger = begun(1.0);
    let mut ask = |event: Event, cost: f64| {
        let requests = [request(7, 0.25), request(0, 0.5)];
        let mut release = |device, granted| match device {
            7 => Ok::<_, LedgerError>((super::event(granted), granted)),
            _ => Ok((event.clone(), cost)),
        };
        record_round(&mut ledger, "run", 1, Repeat::Replay, 0.0, &requests, &mut release)
            .unwrap_err()
    };
    let error = ask(event(0.5), 1.0f64.next_up());
    assert!(matches!(error, LedgerError::Overspent { device: 0, left: 1.0, .. }));
    for cost in [f64::NAN, -1.0] {
        assert!(matches!(ask(event(0.5), cost), LedgerError::Parameter { name: "cost", .. }));
    }
    let bare = Histogram { adjacency: Adjacency::ZeroOut, noise: NoiseKind::Gaussian, sigma: 0.0 };
    for bare in [Event::NonPrivate { what: "labels".into() }, Event::Histogram(bare)] {
        assert!(matches!(ask(bare.clone(), 0.5), LedgerError::NonPrivate { cost: 0.5, .. }));
        assert!(matches!(ask(bare, f64::INFINITY), LedgerError::Overspent { .. }));
    }
    for cost in [0.0, f64::NAN] {
        assert!(matches!(ask(event(cost), 0.5), LedgerError::Unrecordable { .. }));
    }
    assert!(ledger.releases().unwrap().is_empty());
    assert_eq!(ledger.spent("data", 7).unwrap(), 0.0);

    // The caller's own error comes back as it is.
    #[derive(Debug)]
    enum Failed {
        Ledger,
        Calibration,
    }
    impl From<LedgerError> for Failed {
        fn from(_: LedgerError) -> Self {
            Self::Ledger
        }
    }
    let requests = [request(7, 0.25), request(0, 0.5)];
    let mut release = |device, cost| match device {
        7 => Ok((event(cost), cost)),
        _ => Err(Failed::Calibration),
    };
    let result = record_round(&mut ledger, "run", 1, Repeat::Replay, 0.0, &requests, &mut release);
    assert!(matches!(result, Err(Failed::Calibration)));
    let result = record_round(&mut ledger, "none", 1, Repeat::Replay, 0.0, &requests, &mut release);
    assert!(matches!(result, Err(Failed::Ledger)));
    assert_eq!(ledger.spent("data", 7).unwrap(), 0.0);
}

#[test]
fn no_noise_costs_infinity_for_ever() {
    let mut ledger = begun(f64::INFINITY);
    let inf = f64::INFINITY;
    let ask = |ledger: &mut Ledger, run: &str, at| {
        let mut release = |_, _| {
            Ok::<_, LedgerError>((Event::NonPrivate { what: "labels".into() }, f64::INFINITY))
        };
        let requests = [request(0, f64::INFINITY)];
        record_round(ledger, run, at, Repeat::Replay, 0.0, &requests, &mut release).unwrap()
    };
    for at in [1, 1, 2] {
        assert_eq!(cost(&ask(&mut ledger, "run", at)[0]), inf);
    }
    // Without a limit, spending goes on.
    assert_eq!(
        cost(&round(&mut ledger, ("run", 3), Repeat::Replay, &[request(0, 0.5)]).unwrap()[0]),
        0.5
    );
    assert_eq!(ledger.spent("data", 0).unwrap(), inf);
    assert_eq!(ledger.own_spent("run", 0, None).unwrap(), inf);
    assert_eq!(ledger.begin_run("second", &data(), &[(0, budget(1e300))]).unwrap(), [0.0]);
    assert_eq!(ask(&mut ledger, "second", 1), [Grant::Refused]);
}

#[test]
fn charges_too_small_to_see_still_count() {
    // 1 + 2⁻⁶⁰ is 1 in floating point: added up plainly, such charges would be free.
    let tiny = 2f64.powi(-60);
    let mut ledger = begun(1.0 + 10.0 * f64::EPSILON);
    round(&mut ledger, ("run", 1), Repeat::Replay, &[request(0, 1.0)]).unwrap();
    let granted: Vec<_> = (2..=20)
        .map(|at| round(&mut ledger, ("run", at), Repeat::Replay, &[request(0, tiny)]).unwrap())
        .filter(|grants| grants[0] != Grant::Refused)
        .collect();
    assert_eq!(granted.len(), 10);
    assert_eq!(ledger.spent("data", 0).unwrap(), 1.0 + 10.0 * f64::EPSILON);
}

/// A million equal budgets are one row; those that differ are found by their place.
#[test]
fn equal_budgets_of_neighbors_are_declared_together() {
    let mut ledger = Ledger::in_memory().unwrap();
    let (small, large) = (budget(0.5), budget(1.0));
    let declared = |device: u32| if device == 777_777 { &large } else { &small };
    let devices: Vec<_> = (0..1_000_000).map(|device| (device, declared(device))).collect();
    let left = ledger.begin_run("run", &data(), &devices).unwrap();
    assert_eq!((left.len(), left[0], left[777_777]), (1_000_000, 0.5, 1.0));
    let ranges: Vec<_> = ledger.declarations().unwrap().into_iter().map(|d| d.devices).collect();
    assert_eq!(ranges, [0..=777_776, 777_777..=777_777, 777_778..=999_999]);

    let ask = [request(5, 0.75), request(777_777, 0.75), request(999_999, 0.25)];
    let grants = round(&mut ledger, ("run", 1), Repeat::Replay, &ask).unwrap();
    assert_eq!(grants.iter().map(cost).collect::<Vec<_>>(), [0.5, 0.75, 0.25]);
    let error = round(&mut ledger, ("run", 2), Repeat::Replay, &[request(1_000_000, 0.1)]);
    assert!(matches!(error, Err(LedgerError::UnknownDevice { device: 1_000_000, .. })));
    let spending = ledger.spending("data").unwrap();
    assert_eq!(
        spending.into_iter().collect::<Vec<_>>(),
        [(5, 0.5), (777_777, 0.75), (999_999, 0.25)]
    );

    // A run that resumes declares the same, in any order; another device or budget is named.
    let mut back: Vec<_> = devices.iter().rev().copied().collect();
    assert_eq!(ledger.begin_run("run", &data(), &back).unwrap()[0], 0.5);
    back[0].1 = &large;
    let error = ledger.begin_run("run", &data(), &back).unwrap_err().to_string();
    assert!(error.contains("device 999999 of"), "{error}");
    let error = ledger.begin_run("run", &data(), &devices[1..]).unwrap_err().to_string();
    assert!(error.contains("[0–999999]") && error.contains("[1–999999]"), "{error}");
    // Kinds of filters hold for ranges that overlap.
    let other = DeclaredBudget { kind: "\"rdp\"".into(), ..budget(1.0) };
    let error = ledger.begin_run("second", &data(), &[(888_888, other)]).unwrap_err();
    assert!(matches!(error, LedgerError::OtherFilter { device: 888_888, .. }), "{error}");
}
