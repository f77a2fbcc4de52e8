//! Diffs as the user's own git would show them.

use weald_core::git_diff::{
    COLORS, DiffOptions, GitSetting, color_of, pager, wants_color, wording,
};
use weald_git::{color_sequence, diff_settings};

use crate::screen::{Palette, clean_patch};
use crate::{Call, Diff, DiffForm, DiffStyle, Failure, Place, Reader, ShownDiff};

/// How a diff is made for a reader, and shown.
pub(crate) struct GitView {
    /// What git is asked for.
    pub form: DiffForm,
    palette: Option<Palette>,
    compares_words: bool,
    pager: Option<String>,
}

impl GitView {
    /// For programs, or for a person with their configuration.
    pub fn new(
        call: &Call<'_>,
        place: &Place,
        style: DiffStyle,
        options: &DiffOptions,
        reader: Option<Reader>,
    ) -> Result<Self, Failure> {
        let mut view = Self {
            form: DiffForm {
                options: options.arguments(),
                ..style.into()
            },
            palette: None,
            compares_words: options.compares_words(),
            pager: None,
        };
        let Some(reader) = reader else {
            return Ok(view);
        };
        let home = call.environment.home();
        let git_dir = place.repository().common_dir();
        let settings = diff_settings(git_dir, home.as_deref())?.into_iter();
        let settings = settings.map(|setting| GitSetting {
            is_users: setting.is_users,
            key: setting.key,
            value: setting.value,
        });
        let settings: Vec<_> = settings.collect();
        view.form.settings = wording(&settings);
        if let Some(width) = reader.width.filter(|_| style == DiffStyle::Stat) {
            view.form.options.push(format!("--stat={width}"));
        }
        let variable = |name: &str| call.environment.get(name);
        let is_plain = variable("NO_COLOR").is_some_and(|value| !value.is_empty())
            || variable("TERM").is_none_or(|terminal| terminal == "dumb");
        let by_config = || wants_color(&settings, reader.is_terminal && !is_plain);
        if reader.color.unwrap_or_else(by_config) {
            let mut colors: Vec<_> = COLORS.iter().map(|(_, code)| (*code).to_owned()).collect();
            for setting in &settings {
                if let Some(color) = color_of(&setting.key) {
                    colors[color] = color_sequence(git_dir, home.as_deref(), &setting.key)?;
                }
            }
            let palette = Palette::new(colors)?;
            view.form.settings.extend(palette.settings());
            view.form.options.push("--color=always".to_owned());
            view.palette = Some(palette);
        }
        if reader.is_terminal {
            view.pager = pager(&settings, variable("GIT_PAGER"), variable("PAGER"));
        }
        Ok(view)
    }

    /// What may be shown of a diff of this form.
    pub fn show(self, diff: Diff) -> ShownDiff {
        let text = diff.text.map(|text| match &self.palette {
            Some(palette) => palette.paint(&text, self.compares_words),
            None => clean_patch(&text),
        });
        ShownDiff {
            files: diff.files,
            truncated: diff.truncated,
            text,
            is_colored: self.palette.is_some(),
            pager: self.pager,
        }
    }
}
