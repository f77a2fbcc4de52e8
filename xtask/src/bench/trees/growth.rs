//! What depends on how many trees there are: creating one more, listing, looking.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use super::ground::Ground;
use super::rivals::{Field, Tools, git, run};
use super::table::{Goal, Row, Table, Unit};
use super::{Samples, Scale, middle};
use crate::bench::ms;

/// How many git processes look at the same time.
const LOOKERS: usize = 4;

/// Below so many microseconds a tree a create counts as independent of them (git adds about 60).
const NO_DEPENDENCE: f64 = 5.0;

/// Measures at each count.
pub fn measure(table: &mut Table, tools: &Tools, scale: &Scale) -> io::Result<()> {
    let names = [
        there(1),
        there(scale.some),
        there(scale.many),
        more("spare"),
        more("checkout"),
        format!("status of {} trees, looked at", scale.looked_at),
        format!("status of {} trees, from the cache", scale.looked_at),
        format!("list, {} trees", scale.many),
        format!("list with status from the cache, {} trees", scale.many),
    ];
    let names = names.each_ref().map(String::as_str);
    if !table.wants(&names) {
        return Ok(());
    }
    let [.., looked, cached, list, list_cached] = names;
    let ground = Ground::usual(tools.lab.path(), 30)?;
    let field = Field::new(tools, &ground, scale.small)?;
    // The peer first: it writes main's configuration once, and a donor that was made before does not fit afterwards.
    field.peer_create()?;
    field.fill(0)?;
    let mut points = Vec::new();
    for count in [1, scale.some] {
        grow(&field, count)?;
        points.push(Point::measure(table, &field, scale.rounds)?);
    }
    grow(&field, scale.looked_at)?;
    looks(table, &field, [looked, cached])?;
    grow(&field, scale.many)?;
    points.push(Point::measure(table, &field, scale.rounds)?);
    slopes(table, &points);
    lists(table, &field, [list, list_cached])
}

fn there(count: usize) -> String {
    format!("create, trees there: {count}")
}

fn more(how: &str) -> String {
    format!("create, each tree more, {how}")
}

/// Trees until there are so many, in whatever way is fastest here.
fn grow(field: &Field<'_>, count: usize) -> io::Result<()> {
    while field.trees() < count {
        run(&mut field.weald_new("any").0)?;
    }
    Ok(())
}

/// Creates at one number of trees.
struct Point {
    trees: f64,
    git: f64,
    checkout: Result<f64, String>,
    spare: Result<f64, String>,
}

impl Point {
    fn measure(table: &mut Table, field: &Field<'_>, rounds: usize) -> io::Result<Self> {
        let there_before = field.trees();
        let (mut theirs, mut peer) = (Vec::new(), Samples::default());
        let (mut checkout, mut spare) = (Samples::default(), Samples::default());
        for _ in 0..rounds {
            theirs.push(field.git_create()?.wall);
            peer.take_if_any(|| field.peer_create());
            checkout.take(|| field.weald_create("checkout"));
            spare.take(|| {
                field.fill(1)?;
                field.weald_create("spare")
            });
        }
        let point = Self {
            trees: (there_before + field.trees()) as f64 / 2.0,
            git: middle(theirs),
            checkout: checkout.middle(),
            spare: spare.middle(),
        };
        for (how, ours) in [("spare", &point.spare), ("checkout", &point.checkout)] {
            let name = format!("{}, {how}", there(there_before));
            let row = Row::new(name, ours.clone()).git(point.git);
            table.add(&row.peer(peer.middle().ok()));
        }
        Ok(point)
    }
}

/// What each tree more adds to a create, between the first and the last count.
fn slopes(table: &mut Table, points: &[Point]) {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return;
    };
    let slope = |from: f64, to: f64| (to - from) * 1e3 / (last.trees - first.trees);
    let ours = |of: fn(&Point) -> Result<f64, String>| Ok(slope(of(first)?, of(last)?));
    // A checkout takes so long that its noise alone is more than what a tree adds.
    let goal = [Goal::AtMost(NO_DEPENDENCE)];
    for (how, ours, goals) in [
        ("spare", ours(|point| point.spare.clone()), &goal[..]),
        ("checkout", ours(|point| point.checkout.clone()), &[]),
    ] {
        let row = Row::new(more(how), ours).git(slope(first.git, last.git));
        table.add(&row.in_unit(Unit::MicrosATree).goals(goals));
    }
}

fn lists(table: &mut Table, field: &Field<'_>, [list, cached]: [&str; 2]) -> io::Result<()> {
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..11 {
        let mut git = field.git(&["worktree", "list", "--porcelain"]);
        theirs.push(field.timed(&mut git)?.0);
        ours.push(field.timed(&mut field.weald(&["list"]))?.0);
    }
    let theirs = middle(theirs);
    let row = Row::new(list, Ok(middle(ours))).git(theirs);
    table.add(&row.goals(&[Goal::AtMost(20.0)]));
    if table.wants(&[cached]) {
        run(&mut field.weald(&["list", "--fresh"]))?;
        let row = Row::new(cached, Ok(known(field)?)).git(theirs);
        table.add(&row.goals(&[Goal::AtMost(60.0)]));
    }
    Ok(())
}

/// A list from what is known.
fn known(field: &Field<'_>) -> io::Result<f64> {
    let times = (0..11).map(|_| Ok(field.timed(&mut field.weald(&["list"]))?.0));
    Ok(middle(times.collect::<io::Result<Vec<_>>>()?))
}

/// Every tree looked at: by git processes side by side, by the peer's list, by ours.
fn looks(table: &mut Table, field: &Field<'_>, [looked, cached]: [&str; 2]) -> io::Result<()> {
    if !table.wants(&[looked, cached]) {
        return Ok(());
    }
    let listed = field
        .timed(&mut field.git(&["worktree", "list", "--porcelain"]))?
        .1;
    let paths = listed
        .lines()
        .filter_map(|line| line.strip_prefix("worktree "));
    let paths: Vec<PathBuf> = paths.skip(1).map(PathBuf::from).collect();
    let (mut theirs, mut ours, mut peers) = (Vec::new(), Vec::new(), Vec::new());
    statuses(field, &paths)?;
    for round in 0..5 {
        theirs.push(statuses(field, &paths)?);
        ours.push(field.timed(&mut field.weald(&["list", "--fresh"]))?.0);
        // It takes seconds; once is enough to see that.
        if let Some(mut peer) = field.peer(&["list"]).filter(|_| round == 0) {
            peers.push(field.timed(&mut peer)?.0);
        }
    }
    let theirs = middle(theirs);
    let row = Row::new(looked, Ok(middle(ours))).git(theirs);
    let row = row.peer(peers.first().copied());
    table.add(&row.goals(&[Goal::AtMost(1_500.0)]));
    let row = Row::new(cached, Ok(known(field)?)).git(theirs);
    table.add(&row.goals(&[Goal::AtMost(60.0)]));
    Ok(())
}

/// Milliseconds of a status of each tree by a process of its own, a few at a time.
fn statuses(field: &Field<'_>, paths: &[PathBuf]) -> io::Result<f64> {
    field.ground.settle()?;
    let (home, next) = (field.ground.path(), AtomicUsize::new(0));
    let worker = || {
        while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
            run(git(home, path).args(["status", "--porcelain"]))?;
        }
        Ok(())
    };
    let started = Instant::now();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..LOOKERS).map(|_| scope.spawn(worker)).collect();
        let mut ended = workers.into_iter().map(|worker| worker.join());
        ended.try_for_each(|ended| ended.expect("no panic"))
    })
    .map(|()| ms(started.elapsed()))
}
