//! `weald shell-init`

use std::io::Write;

use clap::{Args, ValueEnum};

use crate::context::Context;
use crate::errors::Failure;
use crate::exit;

/// Print what a shell needs so that enter and exit change the directory
///
/// In ~/.bashrc or ~/.zshrc: eval "$(weald shell-init bash)"; in fish: weald shell-init fish | source
#[derive(Args)]
pub struct ShellInit {
    /// Which shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

#[derive(Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

const POSIX: &str = r#"weald() {
  case "$1" in
    enter|exit)
      case " $* " in
        *" --json "*|*" --help "*|*" -h "*) command weald "$@" ;;
        *) local code; code="$(command weald "$@")" || return $?; eval "$code" ;;
      esac ;;
    *) command weald "$@" ;;
  esac
}
"#;

const FISH: &str = r#"function weald
  if contains -- "$argv[1]" enter exit; and not contains -- --json $argv; and not contains -- --help $argv
    set -l code (command weald $argv | string collect); or return $pipestatus[1]
    string replace -ra 'export (\w+)=' 'set -gx $1 ' -- $code | string replace -ra '^unset ' 'set -e ' | source
  else
    command weald $argv
  end
end
"#;

impl ShellInit {
    /// Does it.
    pub fn run(self, context: &Context<'_>) -> Result<u8, Failure> {
        let text = match self.shell {
            Shell::Bash | Shell::Zsh => POSIX,
            Shell::Fish => FISH,
        };
        let mut out = context.ui.out();
        out.write_all(text.as_bytes())?;
        Ok(exit::DONE)
    }
}
