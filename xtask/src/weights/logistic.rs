//! Logistic regression by Newton's method, and how good its answers are.

use fanfold_core::study::N_FEATURES;

use super::cases::Cases;

type Vector = [f64; N_FEATURES];

/// Keeps weights small of which the cases say little.
const RIDGE: f64 = 1.0;
/// Newton's method doubles the digits each time.
const MOST_STEPS: usize = 25;

/// How good some weights are.
pub(super) struct Figures {
    pub(super) log_loss: f64,
    /// How often a positive case scores higher than another one.
    pub(super) area: f64,
}

/// The weights that make the cases likeliest.
pub(super) fn fit(cases: &Cases) -> Vector {
    let mut weights = [0.0; N_FEATURES];
    for _ in 0..MOST_STEPS {
        let mut slope = weights.map(|weight| -RIDGE * weight);
        let mut bend = [[0.0; N_FEATURES]; N_FEATURES];
        for (i, row) in bend.iter_mut().enumerate() {
            row[i] = RIDGE;
        }
        for (features, used) in cases.iter() {
            let chance = 1.0 / (1.0 + (-score(&features, &weights)).exp());
            for i in (0..N_FEATURES).filter(|i| features[*i] != 0.0) {
                slope[i] += features[i] * (used - chance);
                let by = features[i] * chance * (1.0 - chance);
                for j in 0..=i {
                    bend[i][j] += by * features[j];
                }
            }
        }
        let step = solve(bend, slope);
        weights.iter_mut().zip(step).for_each(|(weight, step)| *weight += step);
        if step.iter().all(|step| step.abs() < 1e-6) {
            break;
        }
    }
    weights
}

/// Log-loss and area under the curve.
pub(super) fn figures(cases: &Cases, weights: &Vector) -> Figures {
    let mut scored: Vec<(f64, f64)> =
        cases.iter().map(|(features, used)| (score(&features, weights), used)).collect();
    let loss = |(score, used): &(f64, f64)| score.max(0.0) + (-score.abs()).exp().ln_1p() - used * score;
    let log_loss = scored.iter().map(loss).sum::<f64>() / scored.len() as f64;
    scored.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut below, mut won, mut positive) = (0.0, 0.0, 0.0);
    for ties in scored.chunk_by(|a, b| a.0 == b.0) {
        let used: f64 = ties.iter().map(|(_, used)| used).sum();
        let unused = ties.len() as f64 - used;
        won += used * (below + unused / 2.0);
        below += unused;
        positive += used;
    }
    Figures { log_loss, area: won / (positive * below) }
}

fn score(features: &Vector, weights: &Vector) -> f64 {
    features.iter().zip(weights).map(|(feature, weight)| feature * weight).sum()
}

/// Solves a system of which the lower half is given, by Cholesky's way.
fn solve(mut lower: [Vector; N_FEATURES], mut right: Vector) -> Vector {
    for i in 0..N_FEATURES {
        for j in 0..=i {
            let known: f64 = (0..j).map(|k| lower[i][k] * lower[j][k]).sum();
            let rest = lower[i][j] - known;
            lower[i][j] = if i == j { rest.sqrt() } else { rest / lower[j][j] };
        }
    }
    for i in 0..N_FEATURES {
        let known: f64 = (0..i).map(|k| lower[i][k] * right[k]).sum();
        right[i] = (right[i] - known) / lower[i][i];
    }
    for i in (0..N_FEATURES).rev() {
        let known: f64 = (i + 1..N_FEATURES).map(|k| lower[k][i] * right[k]).sum();
        right[i] = (right[i] - known) / lower[i][i];
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_is_solved() {
        let mut matrix = [[0.0; N_FEATURES]; N_FEATURES];
        for (i, row) in matrix.iter_mut().enumerate() {
            for (j, cell) in row.iter_mut().enumerate().take(i + 1) {
                *cell = if i == j { 9.0 + i as f64 } else { 0.5 };
            }
        }
        let wanted: Vector = std::array::from_fn(|i| i as f64 - 4.0);
        let cell = |i: usize, j: usize| matrix[i.max(j)][i.min(j)];
        let right: Vector = std::array::from_fn(|i| (0..N_FEATURES).map(|j| cell(i, j) * wanted[j]).sum());
        let found = solve(matrix, right);
        assert!(found.iter().zip(wanted).all(|(found, wanted)| (found - wanted).abs() < 1e-9));
    }
}
