//! One kill at a labelled step: what makes an operation come to it, and what must be possible afterwards.

use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use super::World;

/// Dirt of every kind, with commits.
const ALL: &str = "commit stash staged changed loose";

/// The same without a commit: the branch is where it began.
const NO_COMMIT: &str = "staged changed loose";

/// Kills an operation at `label` in a tree of this kind (`sealed` or `linked`); nothing may be lost, one repair mends it,
/// and the operation can be done afterwards. `name` must be new in this world.
pub fn kill_at(world: &World, label: &str, kind: &str, name: &str) {
    let round = Round {
        world,
        label,
        kind,
        name,
    };
    match label.split('.').next().unwrap_or_default() {
        "create" => round.create(),
        "import" | "visit" => round.import(),
        "remove" => round.remove(),
        "restore" => round.restore(),
        "purge" => round.purge(),
        "snapshot" => round.snapshot(),
        "recreate" => round.recreate(),
        "adopt" => round.adopt(),
        "sync" => round.sync(),
        "vault" => round.vault(),
        "pool" => round.pool(),
        "agent" => round.agent(),
        "repair" => round.repair(),
        "clean" => round.clean(),
        "sweep" => round.sweep(),
        "evict" => round.evict(),
        "rebuild" => round.rebuild(),
        "undo" => round.undo(),
        "land" | "gate" => round.land(),
        "stash" => round.stash(),
        _ => world.fail(&format!("nobody knows how to come to {label}")),
    }
}

/// The kinds of trees in which an operation comes to a step.
pub fn kinds_of(label: &str) -> &'static [&'static str] {
    match label.split('.').next().unwrap_or_default() {
        "vault" | "pool" | "agent" | "gate" | "import" | "sweep" | "stash" | "visit" => &["sealed"],
        "adopt" => &["linked"],
        _ if label == "remove.head_kept" => &["linked"],
        _ if label == "restore.transferred" => &["sealed"],
        _ => &["sealed", "linked"],
    }
}

struct Round<'r> {
    world: &'r World,
    label: &'r str,
    kind: &'r str,
    name: &'r str,
}

impl Round<'_> {
    fn ok(&self, args: &[&str]) {
        let answer = self.world.env().weald(args);
        if answer.code != 0 {
            let (label, kind) = (self.label, self.kind);
            let told = answer.stderr;
            self.world.fail(&format!(
                "{args:?} after {label} in a {kind} tree: {}{told}",
                answer.stdout
            ));
        }
    }

    fn cut(&self, args: &[&str]) {
        self.world.cut(self.label, args, &[]);
    }

    /// Puts the world in order after the kill.
    fn heal(&self) {
        self.world
            .heal(&format!("{} in a {} tree", self.label, self.kind));
    }

    /// Work of this kind, without what the kind can't have: linked trees share one stash.
    fn grow(&self, dirt: &str) -> PathBuf {
        let dirt = match self.kind {
            "sealed" => dirt.to_owned(),
            _ => dirt.replace("stash ", ""),
        };
        self.world.grow(self.name, self.kind, &dirt)
    }

    fn is_at_its_place(&self) -> bool {
        self.world.place(self.name).exists()
    }

    fn create(&self) {
        self.cut(&["new", self.name, "--kind", self.kind]);
        self.heal();
        self.ok(&["ensure", self.name, "--kind", self.kind]);
    }

    fn import(&self) {
        let tree = self.grow(ALL);
        self.ok(&["status", self.name]);
        let amend = "git commit -q --amend --only -m again";
        self.world.shell(&tree, amend, &[]);
        self.world.note_commits(self.name, &tree);
        self.cut(&["status", self.name]);
        self.heal();
        self.ok(&["status", self.name]);
    }

    fn remove(&self) {
        let tree = match self.label {
            "remove.branch_kept" => self.grow(NO_COMMIT),
            _ => self.grow(ALL),
        };
        if self.label == "remove.forgetting" {
            self.ok(&["status", self.name]);
            self.world.give_up(self.name);
            fs::remove_dir_all(tree).expect("somebody deletes it");
        }
        self.cut(&["rm", self.name, "--discard"]);
        if self.label == "remove.forgetting" {
            self.world.env().weald(&["doctor", "--fix"]);
            self.ok(&["rm", self.name]);
            return self.heal();
        }
        self.heal();
        if self.is_at_its_place() {
            self.ok(&["rm", self.name, "--discard"]);
        }
        self.ok(&["trash", "restore", self.name]);
        self.world.check("a removal and a restore");
    }

    fn restore(&self) {
        match self.label {
            "restore.transferred" => self.grow(NO_COMMIT),
            _ => self.grow(ALL),
        };
        self.ok(&["rm", self.name, "--discard"]);
        self.cut(&["trash", "restore", self.name]);
        self.heal();
        if !self.is_at_its_place() {
            self.ok(&["trash", "restore", self.name]);
        }
        self.ok(&["status", self.name]);
    }

    fn purge(&self) {
        self.grow(ALL);
        self.ok(&["rm", self.name, "--discard"]);
        self.world.give_up(self.name);
        let purge = ["trash", "purge", "--older-than", "1ms", "--apply"];
        self.cut(&purge);
        self.heal();
        self.ok(&purge);
    }

    fn snapshot(&self) {
        let tree = self.grow(ALL);
        if !self.label.contains("put") {
            self.cut(&["snapshot", "create", self.name]);
            self.heal();
            return self.ok(&["snapshot", "create", self.name]);
        }
        self.ok(&["snapshot", "create", self.name]);
        fs::write(tree.join("tool"), "newer\n").expect("it can be written");
        let newer = self.world.now(&tree.join("tool"));
        self.world.renote(self.name, |work| {
            work.files.insert("tool".into(), newer);
            work.put_back = true;
        });
        self.cut(&["snapshot", "restore", self.name]);
        self.heal();
        self.ok(&["snapshot", "restore", self.name]);
        self.world.check("a snapshot that was put back");
    }

    fn recreate(&self) {
        let tree = self.grow(ALL);
        self.ok(&["status", self.name]);
        self.world.give_up(self.name);
        fs::remove_dir_all(tree).expect("somebody deletes it");
        self.cut(&["ensure", self.name]);
        // That its directory is gone is nothing that a repair decides about.
        self.world.env().weald(&["doctor", "--fix"]);
        self.ok(&["ensure", self.name]);
        self.heal();
    }

    fn adopt(&self) {
        let tree = self.world.env().root().join(self.name);
        let path = tree.to_str().expect("a plain path");
        self.world
            .env()
            .git(&["worktree", "add", "-q", path, "-b", self.name]);
        self.world
            .fill(self.name, &tree, "commit staged changed loose");
        self.cut(&["adopt", path]);
        self.heal();
        if self.world.env().weald(&["show", self.name]).code != 0 {
            self.ok(&["adopt", path]);
        }
    }

    /// Somebody commits to main.
    fn move_main(&self) {
        let repo = self.world.env().repo();
        let script = "echo \"$1\" > moved; git commit -q --only -m \"main moves for $1\" moved";
        self.world.shell(&repo, script, &[self.name]);
        self.world.note_commits("main", &repo);
    }

    fn sync(&self) {
        self.grow("commit changed loose");
        self.move_main();
        self.cut(&["sync", self.name]);
        self.heal();
        self.ok(&["sync", self.name]);
    }

    fn vault(&self) {
        if !["vault.linked", "vault.packed", "vault.dropping"].contains(&self.label) {
            self.move_main();
            return self.create();
        }
        self.move_main();
        self.grow(ALL);
        self.world.env().git(&["repack", "-adq"]);
        if self.label == "vault.dropping" {
            // What only a redundant pack holds is packed anew first.
            self.ok(&["vault", "maintain"]);
        }
        self.cut(&["vault", "maintain", "--now"]);
        self.heal();
        self.ok(&["vault", "maintain", "--now"]);
        self.world.check("the vault's upkeep");
    }

    fn pool(&self) {
        let size = [("WEALD_POOL_SIZE", "1"), ("WEALD_POOL_BACKGROUND", "false")];
        let run = |args: &[&str]| {
            let mut command = self.world.env().weald_command(args);
            command.envs(size);
            let output = command.output().expect("weald starts");
            if !output.status.success() {
                self.world.fail(&format!("{args:?}: {output:?}"));
            }
        };
        run(&["pool", "drain"]);
        if ["pool.spare_held", "pool.unsealed", "pool.taken"].contains(&self.label) {
            run(&["pool", "fill"]);
        }
        match self.label {
            "pool.taken" => self.world.cut(self.label, &["new", self.name], &size),
            _ => {
                self.move_main();
                self.world.cut(self.label, &["pool", "fill"], &size);
            }
        }
        self.heal();
        run(&["pool", "fill"]);
        run(&["ensure", self.name]);
    }

    fn agent(&self) {
        let (env, file) = (self.world.env(), format!("agent-{}", self.name));
        let added = env.ok(&["task", "add", self.name]);
        let id = added["task"]["id"].to_string().replace('"', "");
        let step = format!("write {file} once");
        let words = env.agent(&[&format!("[ -s {file} ] || {step}"), "commit work"]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.cut(&[&["work", &id, "--"], words.as_slice()].concat());
        self.heal();
        self.ok(&[&["resume", &id, "--"], words.as_slice()].concat());
        assert_eq!(env.git(&["show", &format!("main:{file}")]), "once\n");
    }

    fn repair(&self) {
        match self.label {
            "repair.branch_gone" => {
                let new = ["new", self.name, "--kind", self.kind];
                self.world.cut("create.branched", &new, &[]);
            }
            "repair.unregistered" => {
                self.grow(ALL);
                let rm = ["rm", self.name, "--discard"];
                self.world.cut("remove.renamed", &rm, &[]);
            }
            _ => {
                let tree = self.grow(ALL);
                let elsewhere = self.world.place(&format!("moved-{}", self.name));
                fs::rename(&tree, &elsewhere).expect("somebody moves it");
                self.world.renote(self.name, |work| work.path = elsewhere);
            }
        }
        self.cut(&["doctor", "--fix"]);
        self.heal();
    }

    fn clean(&self) {
        self.grow("landing");
        self.ok(&["land", self.name, "--keep"]);
        let clean = ["clean", "--apply", "--min-age", "0"];
        self.cut(&clean);
        self.heal();
        self.ok(&clean);
        if self.is_at_its_place() {
            self.world.fail("a clean took nothing");
        }
        self.world.check("a clean");
    }

    fn sweep(&self) {
        let login = self.make_stale();
        let sweep = ["sweep", "--set", "sweep.cycle=1ms"];
        self.cut(&sweep);
        self.heal();
        self.ok(&sweep);
        let env = self.world.env();
        let shown = env.git(&["worktree", "list", "--porcelain"]);
        let tree = env.ok(&["show", self.name])["tree"].clone();
        if !tree["locked"].is_null() || shown.contains("locked weald: ") || login.exists() {
            self.world
                .fail(&format!("a sweep left something: {tree}\n{shown}"));
        }
        self.world.check("a sweep");
    }

    /// A lock whose task was closed long ago, marked by a first cycle, and an agent's login; answers where that is.
    fn make_stale(&self) -> PathBuf {
        let (env, task) = (self.world.env(), format!("closed-{}", self.name));
        let import = |more: &str| {
            let line = format!(r#"{{"id": "{task}", "subject": "{task}"{more}}}"#);
            env.weald_with_input(&["task", "import"], line.as_bytes())
        };
        import("");
        let lock = ["--task", &task, "--set", "tree.lock=create"];
        self.ok(&[&["new", self.name, "--kind", self.kind], &lock[..]].concat());
        let place = self.world.place(self.name);
        self.world.fill(self.name, &place, ALL);
        import(r#", "status": "completed", "closed_at": 1"#);
        self.ok(&["sweep", "--set", "sweep.cycle=1ms"]);
        let id = env.ok(&["show", self.name])["tree"]["id"].to_string();
        let home = env.own_folder().join("homes").join(id).join("claude");
        fs::create_dir_all(&home).expect("an agent was there");
        let login = home.join(".credentials.json");
        let file = fs::File::create(&login).expect("it had a login");
        file.set_modified(SystemTime::UNIX_EPOCH).expect("long ago");
        login
    }

    fn evict(&self) {
        let tree = self.grow("commit staged changed loose");
        let build = r#"
            echo node_modules >> "$(git rev-parse --git-path info/exclude)"
            mkdir node_modules; echo made > node_modules/made"#;
        self.world.shell(&tree, build, &[]);
        let free = ["usage", self.name, "--free", "1000T", "--apply"];
        let free = [&free[..], &["--set", "usage.min_age=0"]].concat();
        self.cut(&free);
        self.heal();
        self.world.check("an eviction");
        self.world.shell(&tree, "mkdir node_modules", &[]);
        // No disk has so much room: it says so, and everything that may go is gone.
        let answer = self.world.env().weald(&free);
        let waits = ["node_modules", ".weald-evicted", ".git/weald-evicted"];
        if answer.code != 1 || waits.iter().any(|left| tree.join(left).exists()) {
            self.world
                .fail(&format!("an eviction left something: {answer:?}"));
        }
    }

    fn undo(&self) {
        self.grow(ALL);
        self.ok(&["keep", self.name]);
        self.ok(&["rm", self.name, "--discard"]);
        self.cut(&["undo"]);
        self.heal();
        let shown = self.world.env().ok(&["show", self.name]);
        if shown["tree"]["status"] != "kept" {
            self.world.fail(&format!("not as it was: {shown}"));
        }
        self.world.check("an undone removal");
    }

    fn rebuild(&self) {
        self.grow(ALL);
        self.ok(&["status", self.name]);
        let database = self.world.env().private().join("weald.db");
        fs::write(database, "damaged").expect("it can be written");
        let rebuild = ["doctor", "--rebuild", "--fix"];
        self.cut(&rebuild);
        if self.label != "rebuild.in_place" {
            self.ok(&rebuild);
        }
        self.heal();
        self.ok(&["status", self.name]);
    }

    fn land(&self) {
        let (env, gate) = (self.world.env(), [("WEALD_GATE_COMMAND", "true")]);
        self.grow("landing");
        let variables: &[_] = match self.label {
            "gate.made" => &gate,
            _ => &[],
        };
        // Only a target that is checked out nowhere is looked for again.
        let elsewhere = self.label == "land.looked";
        if elsewhere {
            env.git(&["switch", "-q", "-c", &format!("beside-{}", self.name)]);
        }
        self.world.cut(self.label, &["land", self.name], variables);
        self.heal();
        if self.is_at_its_place() {
            self.ok(&["land", self.name]);
        }
        if elsewhere {
            env.git(&["switch", "-q", "main"]);
        }
        let landed = format!("main:landed-{}", self.name);
        let held = env.git(&["show", &landed]);
        assert_eq!(held.trim(), self.name, "{}", self.label);
        self.world.check("a landing");
    }
    /// A landing of what is changed in main's checkout, too; one more file there has a mode that a stash does not keep.
    fn stash(&self) {
        let main = self.world.env().repo();
        self.grow("landing");
        let change = "echo \"$1\" > target; chmod 600 file";
        self.world.shell(&main, change, &[self.name]);
        let autostash = [("WEALD_LANDING_AUTOSTASH", "true")];
        self.world.cut(self.label, &["land", self.name], &autostash);
        // What was stashed is named, and comes back by the command that is.
        self.ok(&["doctor", "--fix"]);
        let back = "test -z \"$(git stash list)\" || git stash pop -q --index
                    git checkout -q HEAD -- target; chmod 644 file";
        self.world.shell(&main, back, &[]);
        self.heal();
        if self.is_at_its_place() {
            self.ok(&["land", self.name]);
        }
        let landed = format!("main:landed-{}", self.name);
        let held = self.world.env().git(&["show", &landed]);
        assert_eq!(held.trim(), self.name, "{}", self.label);
        self.world.check("a landing over a stash");
    }
}
