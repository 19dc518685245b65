//! Memory quota for request bodies. Small bodies are exempt; large ones wait until there is room.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The quota is granted in units of this size.
const UNIT: usize = 64 << 10;
/// Bodies up to this size are exempt.
const SMALL: usize = 256 << 10;

/// Memory for request bodies.
pub(crate) struct BodyQuota {
    free: Arc<Semaphore>,
    n_units: u32,
}

/// The share of one body; released when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct QuotaShare {
    units: Option<OwnedSemaphorePermit>,
}

impl BodyQuota {
    pub(crate) fn new(n_bytes: usize) -> BodyQuota {
        let n_units = u32::try_from(n_bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).clamp(1, MAX_UNITS);
        BodyQuota { free: Arc::new(Semaphore::new(n_units as usize)), n_units }
    }

    /// Waits until a share covers `n_bytes`. A body larger than the quota gets all of it.
    pub(crate) async fn grow(&self, share: &mut QuotaShare, n_bytes: usize) {
        let needed = match n_bytes {
            0..=SMALL => 0,
            _ => u32::try_from(n_bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).min(self.n_units),
        };
        let has = share.units.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = needed.saturating_sub(u32::try_from(has).unwrap_or(u32::MAX));
        if more == 0 {
            return;
        }
        // The semaphore is never closed.
        let Ok(granted) = Arc::clone(&self.free).acquire_many_owned(more).await else { return };
        match &mut share.units {
            Some(units) => units.merge(granted),
            None => share.units = Some(granted),
        }
    }
}

/// 16 TiB: more than any machine has.
const MAX_UNITS: u32 = 1 << 28;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn is_granted(quota: &BodyQuota, share: &mut QuotaShare, n_bytes: usize) -> bool {
        tokio::time::timeout(Duration::from_millis(20), quota.grow(share, n_bytes)).await.is_ok()
    }

    #[tokio::test]
    async fn large_bodies_wait_for_quota_and_small_ones_do_not() {
        let quota = BodyQuota::new(4 << 20);
        let (mut one, mut other, mut small) =
            (QuotaShare::default(), QuotaShare::default(), QuotaShare::default());
        assert!(is_granted(&quota, &mut one, 1 << 20).await);
        assert!(is_granted(&quota, &mut one, 3 << 20).await, "a share can grow");
        assert!(!is_granted(&quota, &mut other, 2 << 20).await);
        assert!(is_granted(&quota, &mut other, 1 << 20).await, "a wait that timed out has taken nothing");
        assert!(is_granted(&quota, &mut small, SMALL).await);
        drop(one);
        assert!(is_granted(&quota, &mut other, 4 << 20).await);
        drop(other);
        assert!(
            is_granted(&quota, &mut QuotaShare::default(), 40 << 20).await,
            "an oversized body gets all of it"
        );
    }
}
