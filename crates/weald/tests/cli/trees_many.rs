//! Many trees at once: each is looked into, none hides another.

use std::fs;

use serde_json::{Value, json};

use crate::trees_remove::{commit, git_in, grow, repository};

#[test]
fn k16_many_trees_are_looked_into_at_once_and_each_is_told_as_it_is() {
    let env = repository();
    let paths: Vec<_> = (1..=9)
        .map(|number| {
            let kind = if number % 4 == 0 { "linked" } else { "sealed" };
            grow(&env, &format!("t{number}"), kind)
        })
        .collect();
    fs::write(paths[1].join("new"), "n\n").unwrap();
    let tip = commit(&env, &paths[2], "done", "d\n");
    fs::write(paths[3].join("config.py"), "changed\n").unwrap();
    fs::remove_dir_all(paths[4].join(".git")).unwrap();
    fs::remove_dir_all(&paths[5]).unwrap();
    git_in(&env, &paths[6], &["checkout", "-q", "--detach"]);
    let listed = env.ok(&["list", "--fresh"]);
    let trees = listed["trees"].as_array().unwrap();
    let names: Vec<_> = trees.iter().map(|tree| tree["name"].clone()).collect();
    let expected: Vec<Value> = (1..=9).map(|number| json!(format!("t{number}"))).collect();
    assert_eq!(names, expected, "by number");
    let dirty: Vec<_> = trees.iter().map(|tree| tree["dirty"].clone()).collect();
    let (yes, no, unknown) = (json!(true), json!(false), json!("unknown"));
    let expected = [&no, &yes, &no, &yes, &unknown, &unknown, &no, &no, &no];
    assert_eq!(dirty, expected.map(Clone::clone));
    assert_eq!(trees[2]["inner_head"], json!(tip));
    assert_eq!(trees[2]["ahead"], 1);
    assert_eq!(trees[6]["inner_branch"], Value::Null, "detached");
    assert_eq!(trees[7]["inner_branch"], "wt/t8");
    assert_eq!(
        env.git(&["rev-parse", "wt/t3"]).trim(),
        tip,
        "it was taken in"
    );
    for (number, tree) in trees.iter().enumerate() {
        let looked = tree["status_at"].is_string();
        assert_eq!(looked, ![4, 5].contains(&number), "{tree}");
    }
}
