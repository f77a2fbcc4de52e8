//! What a rebuilt registry has that the one in place has not, and the other way round.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use weald_core::store::{
    AgentFilter, MessageFilter, Read, SessionSet, Store, StoreError, TaskFilter,
};

use super::Rebuilt;
use crate::Upkeep;

/// One kind of record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compared {
    pub kind: Cow<'static, str>,
    /// How many there are; absent if the database in place can't be read.
    pub present: Option<usize>,
    /// How many there would be.
    pub rebuilt: usize,
    /// How many are not the same.
    pub differ: usize,
}

type Records = Vec<(&'static str, BTreeMap<String, Value>)>;

impl Upkeep<'_> {
    /// Compares what was made with what is in place.
    pub(super) fn compare_registries(
        &self,
        told: &mut Rebuilt,
        present: Option<&dyn Store>,
    ) -> Result<(), StoreError> {
        let rebuilt = records(self.trees.engine.store().read()?.as_ref())?;
        // What its log can't explain can't be read either.
        let present = match present.map(|store| records(store.read()?.as_ref())) {
            Some(Ok(records)) => Some(records),
            Some(Err(error)) => {
                told.problem = told.problem.take().or(Some(error.to_string()));
                None
            }
            None => None,
        };
        for (place, (kind, new)) in rebuilt.iter().enumerate() {
            let old = present.as_ref().map(|records| &records[place].1);
            told.records.push(Compared {
                kind: (*kind).into(),
                present: old.map(BTreeMap::len),
                rebuilt: new.len(),
                differ: old.map_or(new.len(), |old| differing(old, new)),
            });
        }
        told.agrees = told.problem.is_none()
            && present.is_some()
            && told.records.iter().all(|records| records.differ == 0);
        Ok(())
    }
}

fn differing(old: &BTreeMap<String, Value>, new: &BTreeMap<String, Value>) -> usize {
    let changed = new
        .iter()
        .filter(|(id, record)| old.get(*id) != Some(record));
    let gone = old.keys().filter(|id| !new.contains_key(*id));
    changed.count() + gone.count()
}

fn records(read: &dyn Read) -> Result<Records, StoreError> {
    let mut sessions = read.sessions(SessionSet::All)?;
    for session in &mut sessions {
        // Heartbeats are no part of the log.
        session.last_seen = session.started_at;
    }
    Ok(vec![
        ("trees", by_id(&read.trees()?, "id")),
        ("tasks", by_id(&read.tasks(&TaskFilter::default())?, "id")),
        ("sessions", by_id(&sessions, "name")),
        (
            "messages",
            by_id(&read.messages(&MessageFilter::default())?, "id"),
        ),
        ("landings", by_id(&read.landings()?, "id")),
        (
            "agents",
            by_id(&read.agents(&AgentFilter::default())?, "id"),
        ),
        ("queue", by_id(&[read.queue()?], "")),
    ])
}

fn by_id(records: &[impl Serialize], id: &str) -> BTreeMap<String, Value> {
    let values = records
        .iter()
        .filter_map(|record| serde_json::to_value(record).ok());
    values
        .map(|record| (record[id].to_string(), record))
        .collect()
}
