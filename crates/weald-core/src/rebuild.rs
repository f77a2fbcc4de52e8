//! One log made of what is left of its copies, so that a registry can be made from it again.
//!
//! Copies that agree are one log; whatever only one of them has counts. A copy that went another way (a database from a
//! backup, on which others worked on) is a fork: of that, the records count that nobody touched on the main way.
//! Places of events that no copy has are filled, so that every event keeps its own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use jiff::Timestamp;

use crate::agent::AgentId;
use crate::event::{After, Change, Event, EventKind};
use crate::id::{LandingId, MessageId, Seq, TaskId, Token, TreeId};
use crate::name::{SessionName, TreeName};
use crate::queue::Queue;
use crate::task::{Task, TaskStatus};
use crate::tree::{Base, DirectoryIdentity, Trash, Tree, TreeKind, TreeLock, TreeStatus};

/// A tree that no record speaks of, as git and the disk show it.
#[derive(Debug, Clone)]
pub struct FoundTree {
    /// What it is called.
    pub name: TreeName,
    /// How it is made.
    pub kind: TreeKind,
    /// Where it is, or was before the trash.
    pub path: PathBuf,
    pub branch: String,
    /// Where it seems to have started.
    pub base: Base,
    /// Where it would land.
    pub target: String,
    /// What its HEAD held when weald last saw it.
    pub head: Option<String>,
    pub identity: Option<DirectoryIdentity>,
    /// Its registration, if it has one.
    pub registration: Option<String>,
    /// The lock that git shows.
    pub locked: Option<TreeLock>,
    /// Where it waits, if it is in the trash.
    pub trash: Option<Trash>,
}

/// The record of a tree that was found. Of a linked one nobody knows whose the branch is, so it counts as somebody else's.
pub fn recovered_tree(id: TreeId, found: FoundTree, now: Timestamp) -> (Tree, Change) {
    let status = match found.trash {
        Some(_) => TreeStatus::Trashed,
        None => TreeStatus::Active,
    };
    let tree = Tree {
        kind: found.kind,
        branch: found.branch,
        target: found.target,
        status,
        head: found.head,
        identity: found.identity,
        registration: found.registration,
        locked: found.locked,
        adopted: found.kind == TreeKind::Linked,
        trash: found.trash,
        ..Tree::new(id, found.name, found.path, found.base, now)
    };
    (
        tree.clone(),
        Change::tree(EventKind::REGISTRY_RECOVERED, tree),
    )
}

/// One record of a fork, as it goes on in this log.
pub fn recovered_record(after: After) -> Option<Change> {
    recovered_records(after).next().map(|(_, change)| change)
}

/// Each record that a change left, as a change of its own.
fn recovered_records(after: After) -> impl Iterator<Item = (Record, Change)> {
    let kind = || EventKind::REGISTRY_RECOVERED;
    let all = [
        (after.task).map(|of| (Record::Task(of.id.clone()), Change::task(kind(), of))),
        (after.session).map(|of| {
            (
                Record::Session(of.name.clone()),
                Change::session(kind(), of),
            )
        }),
        (after.message).map(|of| (Record::Message(of.id), Change::message(kind(), of))),
        (after.tree).map(|of| (Record::Tree(of.id), Change::tree(kind(), of))),
        (after.landing).map(|of| (Record::Landing(of.id), Change::landing(kind(), of))),
        (after.agent).map(|of| (Record::Agent(of.id), Change::agent(kind(), of))),
    ];
    all.into_iter().flatten()
}

/// A task whose claims may be among `lost` events: the next claim gets a token that none of them had. One that is held
/// stays as it is; its holder goes on.
pub fn fenced_task(task: &Task, lost: u64) -> Option<Change> {
    let is_over = matches!(task.status, TaskStatus::Completed | TaskStatus::Cancelled);
    if lost == 0 || is_over || task.lease.is_some() {
        return None;
    }
    let mut fenced = task.clone();
    fenced.token = Token(task.token.0 + lost);
    Some(Change::task(EventKind::REGISTRY_RECOVERED, fenced))
}

/// The queue with a token that is not below the one that git holds.
pub fn fenced_queue(queue: &Queue, fence: Option<Token>) -> Option<Change> {
    let token = fence.filter(|fence| *fence > queue.token)?;
    let fenced = Queue {
        token,
        ..queue.clone()
    };
    Some(Change::queue(EventKind::REGISTRY_RECOVERED, fenced))
}

/// A longer gap was not left by a crash: what follows it is not of this log.
const LONGEST_GAP: u64 = 100_000;

/// A log made whole.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pieced {
    /// Every event, without a gap from the first on.
    pub events: Vec<Event>,
    /// How many of them stand for one that no copy has.
    pub lost: u64,
    /// What other ways hold and this one does not know: one record each, in an order in which they can be stored.
    pub forked: Vec<After>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Record {
    // What others refer to comes first.
    Task(TaskId),
    Session(SessionName),
    Message(MessageId),
    Tree(TreeId),
    Landing(LandingId),
    Agent(AgentId),
}

type Copy = BTreeMap<Seq, Event>;

/// Makes one log of its copies; what counts most comes first.
pub fn piece_together(copies: Vec<Vec<Event>>) -> Pieced {
    let mut way = Copy::new();
    let mut forks = Vec::new();
    for copy in copies {
        let copy = without_strangers(copy);
        match fork_of(&way, &copy) {
            None => {
                for (seq, event) in copy {
                    way.entry(seq).or_insert(event);
                }
            }
            Some(fork) => forks.push((fork, copy)),
        }
    }
    let mut forked = BTreeMap::new();
    for (fork, copy) in forks {
        let known = images_from(&way, fork);
        for (record, image) in images_from(&copy, fork) {
            if !known.contains_key(&record) {
                forked.entry(record).or_insert(image);
            }
        }
    }
    let (events, lost) = filled(way);
    Pieced {
        events,
        lost,
        forked: forked.into_values().collect(),
    }
}

/// A copy by places, up to where it can't be one log any more.
fn without_strangers(copy: Vec<Event>) -> Copy {
    let sorted: Copy = copy.into_iter().map(|event| (event.seq, event)).collect();
    let mut last = 0;
    let near = |(seq, _): &(Seq, Event)| {
        let is_near = seq.0 > last && seq.0 - last <= LONGEST_GAP;
        last = seq.0;
        is_near
    };
    sorted
        .into_iter()
        .filter(|(seq, _)| seq.0 > 0)
        .take_while(near)
        .collect()
}

/// The first place at which two copies hold different events.
fn fork_of(one: &Copy, other: &Copy) -> Option<Seq> {
    let differs = |(seq, event): &(&Seq, &Event)| {
        one.get(seq)
            .is_some_and(|known| (known.time, &known.kind) != (event.time, &event.kind))
    };
    other.iter().find(differs).map(|(seq, _)| *seq)
}

/// The last image of every record that a copy changed from a place on.
fn images_from(copy: &Copy, from: Seq) -> BTreeMap<Record, After> {
    let events = copy.range(from..).map(|(_, event)| event.after.clone());
    let images = events.flat_map(recovered_records);
    images
        .map(|(record, image)| (record, image.after))
        .collect()
}

/// What the images so far hold that later ones must fit.
#[derive(Default)]
struct Known {
    tasks: BTreeSet<TaskId>,
    messages: BTreeSet<MessageId>,
    holders: BTreeMap<TreeName, (Seq, Tree)>,
}

/// Fills the gaps. An image that speaks of a record which was lost is changed to fit; a name that two trees have at once was
/// given back by the older one in between.
fn filled(way: Copy) -> (Vec<Event>, u64) {
    let mut events: Vec<Event> = Vec::new();
    let mut gaps = Vec::new();
    let mut known = Known::default();
    for (seq, mut event) in way {
        while (events.len() as u64) + 1 < seq.0 {
            let place = Seq(events.len() as u64 + 1);
            let time = events.last().map_or(event.time, |before| before.time);
            let gap = Change::fact(EventKind::LOG_LOST);
            gaps.push(events.len());
            events.push(Event::stamp(gap, place, time, None));
        }
        if let Some((since, loser)) = known.fit(&mut event.after) {
            let is_free = |gap: &&usize| {
                let gap = &events[**gap];
                gap.after.tree.is_none() && gap.seq > since
            };
            match gaps.iter().rev().find(is_free) {
                Some(gap) => give_name_back(&mut events[*gap], loser),
                // It can't have been so: the newer one is left out until it is found on disk.
                None => event.after.tree = None,
            }
        }
        known.learn(seq, &event.after);
        events.push(event);
    }
    (events, gaps.len() as u64)
}

fn give_name_back(gap: &mut Event, mut tree: Tree) {
    tree.status = TreeStatus::Removed;
    gap.tree = Some(tree.name.clone());
    gap.after.tree = Some(tree);
}

fn holds_name(tree: &Tree) -> bool {
    !matches!(tree.status, TreeStatus::Removed | TreeStatus::Trashed)
}

impl Known {
    /// Takes out what leads nowhere; answers another tree that still has the name.
    fn fit(&self, after: &mut After) -> Option<(Seq, Tree)> {
        let new = after.task.as_ref().map(|task| &task.id);
        if let Some(tree) = &mut after.tree
            && let Some(task) = &tree.task
            && new != Some(task)
            && !self.tasks.contains(task)
        {
            tree.task = None;
        }
        if let Some(message) = &mut after.message
            && let Some(request) = message.reply_to
            && !self.messages.contains(&request)
        {
            message.reply_to = None;
        }
        let tree = after.tree.as_ref().filter(|tree| holds_name(tree))?;
        let holder = self.holders.get(&tree.name)?;
        Some(holder.clone()).filter(|(_, holder)| holder.id != tree.id)
    }

    fn learn(&mut self, seq: Seq, after: &After) {
        self.tasks
            .extend(after.task.as_ref().map(|task| task.id.clone()));
        self.messages
            .extend(after.message.as_ref().map(|message| message.id));
        let Some(tree) = &after.tree else {
            return;
        };
        match holds_name(tree) {
            true => drop(self.holders.insert(tree.name.clone(), (seq, tree.clone()))),
            false => self.holders.retain(|_, (_, holder)| holder.id != tree.id),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    fn event(seq: u64, way: i64, change: Change) -> Event {
        let time = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seq as i64 + way * 1000);
        Event::stamp(change, Seq(seq), time, None)
    }

    fn task(seq: u64, way: i64, id: u64) -> Event {
        let task = Task::new(TaskId::Number(id), format!("{way}"), Timestamp::UNIX_EPOCH);
        event(seq, way, Change::task(EventKind::TASK_CREATED, task))
    }

    fn tree(seq: u64, id: u64, name: &str, of: Option<u64>, status: TreeStatus) -> Event {
        let base = Base {
            reference: "main".to_owned(),
            commit: "c".to_owned(),
        };
        let name = name.parse().unwrap();
        let epoch = Timestamp::UNIX_EPOCH;
        let mut tree = Tree::new(TreeId(id), name, "/t".into(), base, epoch);
        tree.task = of.map(TaskId::Number);
        tree.status = status;
        event(seq, 0, Change::tree(EventKind::TREE_CREATE_AFTER, tree))
    }

    #[test]
    fn p9_copies_that_agree_are_one_log_whichever_is_longer() {
        let log = [task(1, 0, 1), task(2, 0, 2), task(3, 0, 3)];
        let cases: [(&[&[usize]], usize, u64); 6] = [
            (&[&[0, 1, 2]], 3, 0),
            (&[&[0], &[0, 1, 2]], 3, 0),
            (&[&[0, 1, 2], &[0]], 3, 0),
            (&[&[0, 2], &[1]], 3, 0),
            (&[&[0, 2]], 3, 1),
            (&[&[], &[]], 0, 0),
        ];
        for (copies, length, lost) in cases {
            let pick = |copy: &&[usize]| copy.iter().map(|place| log[*place].clone()).collect();
            let pieced = piece_together(copies.iter().map(pick).collect());
            assert_eq!(
                (pieced.events.len(), pieced.lost),
                (length, lost),
                "{copies:?}"
            );
            assert!(pieced.forked.is_empty());
            let places = pieced.events.iter().map(|event| event.seq.0);
            assert!(places.eq(1..=length as u64), "{copies:?}");
        }
    }

    #[test]
    fn p9_a_fork_gives_what_the_main_way_did_not_touch() {
        let way = vec![task(1, 0, 1), task(2, 1, 2)];
        let fork = vec![task(1, 0, 1), task(2, 0, 2), task(3, 0, 3), task(4, 0, 3)];
        let pieced = piece_together(vec![way.clone(), fork]);
        assert_eq!(pieced.events, way);
        let [only] = &pieced.forked[..] else {
            panic!("{:?}", pieced.forked);
        };
        let task = only.task.as_ref().unwrap();
        assert_eq!(task.id, TaskId::Number(3));
    }

    #[test]
    fn p9_what_was_lost_leaves_no_reference_to_nowhere_and_no_name_twice() {
        use TreeStatus::{Active, Removed};
        // 2 was the removal of tree 1, 4 the creation of task 9.
        let log = vec![
            tree(1, 1, "fix", None, Active),
            tree(3, 2, "fix", None, Active),
            tree(5, 3, "other", Some(9), Active),
        ];
        let pieced = piece_together(vec![log]);
        assert_eq!(pieced.lost, 2);
        let image = |place: usize| pieced.events[place].after.tree.clone();
        assert_eq!(pieced.events[1].kind, EventKind::LOG_LOST);
        let given_back = image(1).unwrap();
        assert_eq!((given_back.id, given_back.status), (TreeId(1), Removed));
        assert_eq!(image(4).unwrap().task, None);
    }

    #[test]
    fn p9_a_line_of_somebody_else_is_no_event_of_this_log() {
        let far = vec![task(1, 0, 1), task(1 << 30, 0, 2), task(0, 0, 3)];
        let pieced = piece_together(vec![far]);
        assert_eq!((pieced.events.len(), pieced.lost), (1, 0));
    }
}
