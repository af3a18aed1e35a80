//! NOMA against the printed sum over all pairs of devices, signals sent and decoded, closed forms.

use lapa_wireless::channel::{Channels, Complex64};
use lapa_wireless::noma::Receiver::{Matched, Mmse, ZeroForcing};
use lapa_wireless::noma::{Link, Noma, NomaError, Receiver, SicOrder};
use lapa_wireless::units::Watt;
use proptest::prelude::*;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;
use rand_distr::StandardNormal;

const RECEIVERS: [Receiver; 3] = [Matched, ZeroForcing, Mmse];

fn noma(receiver: Receiver, noise: f64) -> Noma {
    Noma { receiver, perfect_sic: false, order: SicOrder::Power, noise: Watt(noise) }
}

/// A draw of CN(0, 1).
fn gaussian(rng: &mut impl Rng) -> Complex64 {
    let re: f64 = rng.sample(StandardNormal);
    let im: f64 = rng.sample(StandardNormal);
    Complex64::new(re, im) * 0.5f64.sqrt()
}

/// Rayleigh channels of the given gains per antenna.
fn rayleigh(rng: &mut impl Rng, gains: &[f64], antennas: usize) -> Channels {
    let mut channels = Channels::new(gains.len(), antennas);
    for (k, gain) in gains.iter().enumerate() {
        channels.of_mut(k).fill_with(|| gaussian(rng) * gain.sqrt());
    }
    channels
}

/// Powers within a factor of 10^`decades`.
fn powers(rng: &mut impl Rng, devices: usize, decades: f64) -> Vec<Watt> {
    (0..devices).map(|_| Watt(10f64.powf(decades * rng.random::<f64>()))).collect()
}

/// As a network has it: gains around 1e-10, noise 1e-13 W.
fn network(seed: u64, devices: usize, antennas: usize) -> (Channels, Vec<Watt>, f64) {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let gains: Vec<f64> = powers(&mut rng, devices, 2.0).iter().map(|g| g.0 * 1e-11).collect();
    let channels = rayleigh(&mut rng, &gains, antennas);
    let powers = powers(&mut rng, devices, -2.0);
    (channels, powers, 1e-13)
}

/// a^H·b
fn dot(a: &[Complex64], b: &[Complex64]) -> Complex64 {
    a.iter().zip(b).map(|(a, b)| a.conj() * b).sum()
}

/// x with A·x = b, by Gaussian elimination with pivots.
fn gauss(mut a: Vec<Vec<Complex64>>, mut b: Vec<Complex64>) -> Vec<Complex64> {
    let n = b.len();
    for j in 0..n {
        let pivot = (j..n).max_by(|&r, &s| a[r][j].norm().total_cmp(&a[s][j].norm())).unwrap();
        a.swap(j, pivot);
        b.swap(j, pivot);
        let (above, below) = a.split_at_mut(j + 1);
        for (i, row) in below.iter_mut().enumerate() {
            let factor = row[j] / above[j][j];
            row.iter_mut().zip(&above[j]).for_each(|(x, y)| *x -= factor * y);
            let known = b[j];
            b[j + 1 + i] -= factor * known;
        }
    }
    for j in (0..n).rev() {
        let known: Complex64 = (j + 1..n).map(|c| a[j][c] * b[c]).sum();
        b[j] = (b[j] - known) / a[j][j];
    }
    b
}

/// The devices decoded after `k`, by comparing with every other.
fn after(channels: &Channels, powers: &[Watt], k: usize) -> Vec<usize> {
    let received = |i: usize| powers[i].0 * channels.gain(i);
    let later = |i: &usize| (received(*i), k) < (received(k), *i);
    (0..powers.len()).filter(later).collect()
}

/// r_k^H of the slow twin: dense linear algebra over all devices decoded after k.
fn receiver(noma: &Noma, channels: &Channels, powers: &[Watt], k: usize) -> Vec<Complex64> {
    let later = after(channels, powers, k);
    let own = channels.of(k);
    match noma.receiver {
        _ if noma.perfect_sic => own.to_vec(),
        Matched => own.to_vec(),
        // The first column of G(G^H·G)⁻¹, with h_k first in G.
        ZeroForcing => {
            let columns: Vec<_> =
                std::iter::once(k).chain(later).map(|i| channels.of(i).to_vec()).collect();
            let gram = columns.iter().map(|a| columns.iter().map(|b| dot(a, b)).collect());
            let mut first = vec![Complex64::ZERO; columns.len()];
            first[0] = Complex64::ONE;
            let weights = gauss(gram.collect(), first);
            let antenna =
                |n: usize| columns.iter().zip(&weights).map(|(column, w)| column[n] * w).sum();
            (0..own.len()).map(antenna).collect()
        }
        Mmse => {
            let entry = |m: usize, n: usize| -> Complex64 {
                let noise = if m == n { noma.noise.0 } else { 0.0 };
                let pair = |&i: &usize| channels.of(i)[m] * channels.of(i)[n].conj() * powers[i].0;
                later.iter().map(pair).sum::<Complex64>() + noise
            };
            let row = |m: usize| (0..own.len()).map(|n| entry(m, n)).collect();
            gauss((0..own.len()).map(row).collect(), own.to_vec())
        }
    }
}

/// The printed formula p_k²|r·h_k|² / (Σ_{i after k} p_i²|r·h_i|² + ‖r‖²σ²).
fn printed(noma: &Noma, channels: &Channels, powers: &[Watt], k: usize) -> f64 {
    let r = receiver(noma, channels, powers, k);
    let through = |i: usize| powers[i].0 * dot(&r, channels.of(i)).norm_sqr();
    let later = if noma.perfect_sic { vec![] } else { after(channels, powers, k) };
    let interference: f64 = later.into_iter().map(through).sum();
    through(k) / (interference + dot(&r, &r).re * noma.noise.0)
}

fn assert_close(a: f64, b: f64, tolerance: f64) {
    assert!((a / b - 1.0).abs() <= tolerance, "{a} is not {b}");
}

fn compare_with_the_printed_formula(noma: &Noma, channels: &Channels, powers: &[Watt]) {
    let links = noma.links(channels, powers).unwrap();
    let sic = noma.sic(channels, powers).unwrap();
    for (k, link) in links.iter().enumerate() {
        let later = after(channels, powers, k).len();
        assert_eq!(link.position as usize, powers.len() - 1 - later);
        assert_eq!(sic.order[link.position as usize] as usize, k);
        assert_close(link.snr, powers[k].0 * channels.gain(k) / noma.noise.0, 1e-12);
        assert_close(link.sinr, printed(noma, channels, powers, k), 1e-9);

        let r = receiver(noma, channels, powers, k);
        let unit = dot(channels.of(k), &r) * powers[k].0.sqrt();
        let w = sic.receivers.of(k);
        let length = dot(w, w).re.sqrt();
        for (w, r) in w.iter().zip(&r) {
            assert!((w - r / unit).norm() <= 1e-9 * length);
        }
    }
}

#[test]
fn the_printed_sum_over_pairs_holds() {
    for receiver in RECEIVERS {
        for perfect_sic in [false, true] {
            for seed in 0..20 {
                let (channels, powers, noise) = network(seed, 6, 8);
                let noma = Noma { perfect_sic, ..noma(receiver, noise) };
                compare_with_the_printed_formula(&noma, &channels, &powers);
            }
        }
    }
}

/// Eq. (6) with the sum over i > k by index, and a silent device in the middle.
#[test]
fn devices_may_be_decoded_in_the_order_of_their_index() {
    let (channels, mut powers, noise) = network(3, 6, 8);
    powers[2] = Watt(0.0);
    let noma = Noma { order: SicOrder::Index, ..noma(Matched, noise) };
    let links = noma.links(&channels, &powers).unwrap();
    let sic = noma.sic(&channels, &powers).unwrap();
    assert_eq!(sic.order, [0, 1, 2, 3, 4, 5]);
    assert!(sic.receivers.of(2).iter().all(|w| *w == Complex64::ZERO));
    for (k, link) in links.iter().enumerate().filter(|(k, _)| *k != 2) {
        let r = channels.of(k);
        let through = |i: usize| powers[i].0 * dot(r, channels.of(i)).norm_sqr();
        let interference: f64 = (k + 1..6).map(through).sum();
        assert_close(link.sinr, through(k) / (interference + dot(r, r).re * noise), 1e-9);
    }
    assert_eq!((links[2].snr, links[2].sinr), (0.0, 0.0));
}

#[test]
fn the_printed_sum_holds_for_many_more_devices_than_antennas() {
    for receiver in [Matched, Mmse] {
        let (channels, powers, noise) = network(21, 200, 8);
        compare_with_the_printed_formula(&noma(receiver, noise), &channels, &powers);
    }
}

/// Sends and decodes Gaussian symbols. The error ŝ − s is then complex Gaussian with variance
/// 1/SINR, so n·SINR·mean|ŝ − s|² is Gamma(n, 1), nearly N(n, n). α = 1e-6 for each of 24 figures.
#[test]
fn decoded_symbols_are_off_by_the_sinr() {
    const DRAWS: usize = 40_000;
    const QUANTILE: f64 = 4.892; // two-sided, α = 1e-6
    let (channels, powers, noise) = network(22, 4, 6);
    let mut rng = ChaCha12Rng::seed_from_u64(23);
    for receiver in RECEIVERS {
        for perfect_sic in [false, true] {
            let noma = Noma { perfect_sic, ..noma(receiver, noise) };
            let links = noma.links(&channels, &powers).unwrap();
            let sic = noma.sic(&channels, &powers).unwrap();
            let mut errors = [0.0; 4];
            for _ in 0..DRAWS {
                let symbols: Vec<_> = (0..4).map(|_| gaussian(&mut rng)).collect();
                let signal =
                    |k: usize, n: usize| channels.of(k)[n] * powers[k].0.sqrt() * symbols[k];
                let thermal: Vec<_> = (0..6).map(|_| gaussian(&mut rng) * noise.sqrt()).collect();
                let mut y: Vec<Complex64> = (0..6)
                    .map(|n| (0..4).map(|k| signal(k, n)).sum::<Complex64>() + thermal[n])
                    .collect();
                for &k in &sic.order {
                    let k = k as usize;
                    let own: Vec<_> = (0..6).map(|n| signal(k, n) + thermal[n]).collect();
                    let heard = if perfect_sic { &own } else { &y };
                    errors[k] += (dot(sic.receivers.of(k), heard) - symbols[k]).norm_sqr();
                    (0..6).for_each(|n| y[n] -= signal(k, n));
                }
            }
            for (error, link) in errors.iter().zip(&links) {
                let z = (error * link.sinr - DRAWS as f64) / (DRAWS as f64).sqrt();
                assert!(z.abs() < QUANTILE, "{receiver:?}, {perfect_sic}: {z}");
            }
        }
    }
}

#[test]
fn without_interference_every_receiver_reaches_the_snr() {
    // Columns of the discrete Fourier transform.
    let mut channels = Channels::new(5, 8);
    for k in 0..5 {
        for (n, h) in channels.of_mut(k).iter_mut().enumerate() {
            *h = Complex64::cis(std::f64::consts::TAU * (k * n) as f64 / 8.0) * 1e-5;
        }
    }
    let powers = [1.0, 1e-3, 1e3, 0.2, 0.3].map(Watt);
    for receiver in RECEIVERS {
        let links = noma(receiver, 1e-13).links(&channels, &powers).unwrap();
        for (link, power) in links.iter().zip(powers) {
            let snr = power.0 * 8e-10 / 1e-13;
            assert_close(link.snr, snr, 1e-12);
            assert_close(link.sinr, snr, 1e-9);
        }
    }
}

#[test]
fn perfect_cancellation_leaves_noise_alone() {
    // More devices than antennas, two of them with the same channel.
    let (mut channels, powers, noise) = network(24, 40, 3);
    let same = channels.of(0).to_vec();
    channels.of_mut(1).copy_from_slice(&same);
    for receiver in RECEIVERS {
        let noma = Noma { perfect_sic: true, ..noma(receiver, noise) };
        let links = noma.links(&channels, &powers).unwrap();
        let sic = noma.sic(&channels, &powers).unwrap();
        for (k, link) in links.iter().enumerate() {
            assert_eq!(link.sinr, link.snr);
            assert_close(link.snr, powers[k].0 * channels.gain(k) / noise, 1e-12);
            let scale = powers[k].0.sqrt() * channels.gain(k);
            for (w, h) in sic.receivers.of(k).iter().zip(channels.of(k)) {
                assert!((w * scale - h).norm() <= 1e-12 * h.norm());
            }
        }
    }
}

#[test]
fn zero_forcing_names_a_device_it_cannot_separate() {
    let h = [Complex64::new(1.0, 2.0), Complex64::new(-0.5, 0.3), Complex64::I];
    let mut channels = Channels::new(2, 3);
    channels.of_mut(0).copy_from_slice(&h);
    // The same direction, turned and weaker.
    channels.of_mut(1).copy_from_slice(&h.map(|h| h * Complex64::new(0.1, -0.7)));
    let error = noma(ZeroForcing, 1.0).links(&channels, &[Watt(1.0); 2]).unwrap_err();
    assert_eq!(error, NomaError::RankDeficient { device: 0, undecoded: 1, antennas: 3 });
    assert_eq!(
        error.to_string(),
        "zero forcing cannot separate device 0 from the 1 decoded after it with 3 antennas: use \
         more antennas, fewer devices at once, the MMSE or matched receiver, or assume perfect \
         cancellation"
    );

    // The fourth of three antennas: position 6 of 10 has three devices after it.
    let (channels, powers, noise) = network(25, 10, 3);
    let order = noma(Mmse, noise).sic(&channels, &powers).unwrap().order;
    let device = order[6] as usize;
    assert_eq!(
        noma(ZeroForcing, noise).sic(&channels, &powers).unwrap_err(),
        NomaError::RankDeficient { device, undecoded: 3, antennas: 3 }
    );
}

/// Two devices that differ by an angle of 1e-3 still part: ‖P⊥h‖² is sin².
#[test]
fn zero_forcing_separates_close_channels() {
    let angle = 1e-3f64;
    let mut channels = Channels::new(2, 2);
    channels.of_mut(0)[0] = Complex64::ONE;
    channels.of_mut(1).copy_from_slice(&[angle.cos().into(), Complex64::I * angle.sin()]);
    let links = noma(ZeroForcing, 1.0).links(&channels, &[Watt(2.0), Watt(1.0)]).unwrap();
    assert_close(links[0].sinr, 2.0 * angle.sin().powi(2), 1e-9);
    assert_close(links[1].sinr, 1.0, 1e-12);
}

/// For the first decoded of all, 1 + SINR = 1/[(I + G^H·G)⁻¹]_kk with MMSE and SINR =
/// 1/[(G^H·G)⁻¹]_kk with zero forcing. Both matrices are graded, which elimination survives, unlike
/// the covariance that the other twin builds.
#[test]
fn twelve_decades_of_power_keep_their_digits() {
    for seed in 0..20 {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let channels = rayleigh(&mut rng, &[1.0; 4], 5);
        let powers = [1e12, 1e8, 1e4, 1.0].map(Watt);
        for receiver in RECEIVERS {
            let links = noma(receiver, 1.0).links(&channels, &powers).unwrap();
            for (k, link) in links.iter().enumerate() {
                assert_eq!(link.position as usize, k);
                let heard = |i: usize, n: usize| channels.of(i)[n] * powers[i].0.sqrt();
                let gram = |i: usize, j: usize| -> Complex64 {
                    (0..5).map(|n| heard(i, n).conj() * heard(j, n)).sum()
                };
                let inverse = |ridge: f64| {
                    let row = |i: usize| {
                        let entry = |j: usize| gram(i, j) + if i == j { ridge } else { 0.0 };
                        (k..4).map(entry).collect()
                    };
                    let mut first = vec![Complex64::ZERO; 4 - k];
                    first[0] = Complex64::ONE;
                    gauss((k..4).map(row).collect(), first)[0].re
                };
                let expected = match receiver {
                    Matched => printed(&noma(Matched, 1.0), &channels, &powers, k),
                    ZeroForcing => 1.0 / inverse(0.0),
                    Mmse => 1.0 / inverse(1.0) - 1.0,
                };
                assert_close(link.sinr, expected, 1e-9);
            }
        }
    }
}

/// Far above the noise MMSE nulls, though the noise is lost in a covariance of 64 bits.
#[test]
fn mmse_becomes_zero_forcing_without_noise() {
    let mut rng = ChaCha12Rng::seed_from_u64(26);
    let channels = rayleigh(&mut rng, &[1.0; 5], 8);
    let powers = [1.0, 2.0, 3.0, 4.0, 5.0].map(Watt);
    let mmse = noma(Mmse, 1e-24).links(&channels, &powers).unwrap();
    let nulled = noma(ZeroForcing, 1e-24).links(&channels, &powers).unwrap();
    for (a, b) in mmse.iter().zip(&nulled) {
        assert_close(a.sinr, b.sinr, 1e-9);
    }
}

#[test]
fn a_silent_device_neither_is_heard_nor_interferes() {
    let (mut channels, mut powers, noise) = network(27, 6, 4);
    powers[2] = Watt(0.0);
    channels.of_mut(4).fill(Complex64::ZERO);
    let heard = [0, 1, 3, 5];
    let alone = channels.select(heard);
    for receiver in RECEIVERS {
        for perfect_sic in [false, true] {
            let noma = Noma { perfect_sic, ..noma(receiver, noise) };
            let links = noma.links(&channels, &powers).unwrap();
            let sic = noma.sic(&channels, &powers).unwrap();
            for (silent, position) in [(2, 4), (4, 5)] {
                assert_eq!(links[silent], Link { snr: 0.0, sinr: 0.0, position });
                assert!(sic.receivers.of(silent).iter().all(|w| *w == Complex64::ZERO));
            }
            let expected = noma.links(&alone, &heard.map(|k| powers[k])).unwrap();
            assert_eq!(heard.map(|k| links[k]).to_vec(), expected);
        }
    }
    let none = noma(ZeroForcing, 1.0).links(&Channels::new(3, 2), &[Watt(1.0); 3]).unwrap();
    assert!(none.iter().all(|link| link.snr == 0.0 && link.sinr == 0.0));
    assert_eq!(noma(Mmse, 1.0).links(&Channels::new(0, 2), &[]), Ok(vec![]));
}

#[test]
fn ties_are_broken_by_index() {
    let mut channels = Channels::new(3, 2);
    (0..3).for_each(|k| channels.of_mut(k).fill(Complex64::ONE));
    let links = noma(Matched, 1.0).links(&channels, &[Watt(1.0); 3]).unwrap();
    // SNR 2 each: the k-th has 2 − k equals behind it.
    for (k, sinr) in [2.0 / 5.0, 2.0 / 3.0, 2.0].into_iter().enumerate() {
        assert_eq!(links[k].position as usize, k);
        assert_close(links[k].sinr, sinr, 1e-12);
    }
}

#[test]
fn bad_input_is_named() {
    let channels = rayleigh(&mut ChaCha12Rng::seed_from_u64(28), &[1.0; 2], 3);
    let says = |noma: Noma, channels: &Channels, powers: &[f64]| {
        let powers: Vec<Watt> = powers.iter().copied().map(Watt).collect();
        let text = noma.links(channels, &powers).unwrap_err().to_string();
        assert_eq!(noma.sic(channels, &powers).unwrap_err().to_string(), text);
        text
    };
    for (noise, shown) in [(0.0, "0"), (-1.0, "-1"), (f64::NAN, "NaN"), (f64::INFINITY, "inf")] {
        assert_eq!(
            says(noma(Mmse, noise), &channels, &[1.0; 2]),
            format!("noise power = {shown} W: expected a finite number above 0")
        );
    }
    for (power, shown) in [(-2.5, "-2.5"), (f64::NAN, "NaN"), (f64::INFINITY, "inf")] {
        assert_eq!(
            says(noma(Mmse, 1.0), &channels, &[1.0, power]),
            format!("transmit power of device 1 = {shown} W: expected a finite number from 0")
        );
    }
    assert_eq!(
        says(noma(Mmse, 1.0), &channels, &[1.0; 3]),
        "3 transmit powers for 2 devices: expected one per device"
    );
    assert_eq!(
        says(noma(Mmse, 1.0), &Channels::new(2, 0), &[1.0; 2]),
        "the channels have no antenna: expected at least 1"
    );
    for (h, shown) in
        [(f64::NAN, "NaN"), (f64::INFINITY, "inf"), (2f64.powi(200), "2.5822498780869086e120")]
    {
        let mut channels = Channels::new(2, 1);
        channels.of_mut(1)[0] = h.into();
        assert_eq!(
            says(noma(Mmse, 1.0), &channels, &[1.0; 2]),
            format!(
                "SNR of device 1 = {shown}: expected at most 1e100; \
                 check its channel, its power and the noise"
            )
        );
    }
}

#[test]
fn the_ends_of_the_range_stay_finite() {
    for (noise, h) in [
        (f64::MIN_POSITIVE, 1e-104),
        (5e-324, 1e-161),
        (5e-324, 1e-310),
        (1e308, 1e200),
        (1e308, 1e104),
    ] {
        let mut channels = rayleigh(&mut ChaCha12Rng::seed_from_u64(29), &[1.0; 4], 4);
        (0..4).for_each(|k| channels.of_mut(k).iter_mut().for_each(|x| *x *= h));
        for receiver in RECEIVERS {
            let noma = noma(receiver, noise);
            let powers = [1.0, 1e-3, 1e-6, 0.0].map(Watt);
            for link in noma.links(&channels, &powers).unwrap() {
                assert!((0.0..=link.snr).contains(&link.sinr) && link.snr.is_finite());
            }
            let sic = noma.sic(&channels, &powers).unwrap();
            assert!((0..4).all(|k| sic.receivers.of(k).iter().all(|w| w.is_finite())));
        }
    }
}

proptest! {
    #[test]
    fn mmse_is_the_best_linear_receiver(
        seed in any::<u64>(), devices in 1..30usize, antennas in 1..10usize, decades in 0.0..12.0
    ) {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let channels = rayleigh(&mut rng, &vec![1.0; devices], antennas);
        let powers = powers(&mut rng, devices, decades);
        let links = |receiver| noma(receiver, 1.0).links(&channels, &powers);
        let mmse = links(Mmse).unwrap();
        let nulled = links(ZeroForcing);
        prop_assert!(nulled.is_ok() || devices > antennas);
        for other in [links(Matched).unwrap(), nulled.unwrap_or_default()] {
            for (best, other) in mmse.iter().zip(&other) {
                prop_assert!(best.sinr >= other.sinr * (1.0 - 1e-9), "{best:?} {other:?}");
                prop_assert!(other.sinr <= other.snr && best.sinr <= best.snr);
                prop_assert!(other.sinr > 0.0);
                prop_assert_eq!(best.position, other.position);
            }
        }
    }

    #[test]
    fn devices_may_come_in_any_order(
        seed in any::<u64>(), devices in 1..8usize, turn in 0..8usize, antennas in 8..10usize
    ) {
        let (channels, powers, noise) = network(seed, devices, antennas);
        let order: Vec<usize> = (0..devices).rev().map(|k| (k + turn) % devices).collect();
        let turned: Vec<Watt> = order.iter().map(|&k| powers[k]).collect();
        for receiver in RECEIVERS {
            let noma = noma(receiver, noise);
            let links = noma.links(&channels, &powers).unwrap();
            let expected: Vec<Link> = order.iter().map(|&k| links[k]).collect();
            let found = noma.links(&channels.select(order.iter().copied()), &turned).unwrap();
            prop_assert_eq!(found, expected);
        }
    }
}
