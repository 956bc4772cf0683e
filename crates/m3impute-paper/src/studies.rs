//! The tables and figures of the paper.

use crate::error::{Error, Result};
use crate::rows::Row;
use m3impute::METHODS;

/// The eight tables of the paper's main part.
const MAIN: &[&str] = &["yacht", "wine", "concrete", "housing", "energy", "naval", "kin8nm", "power"];
/// The 17 of its appendix.
const FURTHER: &[&str] = &[
    "airfoil",
    "blood",
    "wine-white",
    "ionosphere",
    "breast",
    "iris",
    "diabetes",
    "protein",
    "spam",
    "letter",
    "abalone",
    "ai4i",
    "cmc",
    "german",
    "steel",
    "libras",
    "california-housing",
];
/// What a study measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// The error of the imputed cells.
    Errors,
    /// The error of a linear regression that predicts the label from the filled table.
    Labels,
    /// How long methods take.
    Seconds,
    /// How large the tables are; nothing is filled.
    Overview,
    /// How columns are correlated; nothing is filled.
    Correlations,
}

/// A table or figure of the paper.
#[derive(Debug)]
pub struct Study {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its place in the paper.
    pub place: &'static str,
    /// Its title.
    pub title: &'static str,
    /// What it measures.
    pub question: Question,
    /// The paper's tables in it, in groups.
    tables: &'static [&'static [&'static str]],
    /// The masks: mechanism and per cent.
    pub masks: &'static [&'static str],
    /// The study under which its figures are published.
    pub(crate) published: &'static str,
    compared: Compared,
}

/// What is compared.
#[derive(Debug)]
enum Compared {
    /// Methods; all that do not train for hours where none are named.
    Methods,
    /// These settings.
    Settings(&'static [FixedSetting]),
    /// Nothing is filled.
    Nothing,
}

/// A published setting of a method: its name in the paper, method, preset, parameters.
type FixedSetting = (&'static str, &'static str, &'static str, &'static [(&'static str, &'static str)]);

/// A method with its preset and parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The line of a table.
    pub name: String,
    /// The method.
    pub method: String,
    /// Its preset.
    pub preset: String,
    /// Its parameters on top of the preset.
    pub params: Vec<(String, String)>,
}

const fn errors(
    name: &'static str,
    place: &'static str,
    title: &'static str,
    tables: &'static [&'static [&'static str]],
    masks: &'static [&'static str],
) -> Study {
    Study {
        name,
        place,
        title,
        question: Question::Errors,
        tables,
        masks,
        published: name,
        compared: Compared::Methods,
    }
}

const fn settings(
    name: &'static str,
    place: &'static str,
    title: &'static str,
    settings: &'static [FixedSetting],
) -> Study {
    Study { compared: Compared::Settings(settings), ..errors(name, place, title, &[MAIN], &["mcar30"]) }
}

/// Every study, in the paper's order.
pub const STUDIES: &[Study] = &[
    errors("main", "Table 1", "Errors, MCAR 30 %", &[MAIN], &["mcar30"]),
    settings(
        "ablation",
        "Table 2",
        "Units of M3-Impute, and uniform sampling",
        &[
            ("hyperimpute", "hyperimpute", "paper", &[]),
            ("grape", "grape", "paper", &[]),
            ("init only", "m3", "paper", &[("variant", "init")]),
            ("init + FCU", "m3", "paper", &[("variant", "init-fcu")]),
            ("init + SCU", "m3", "paper", &[("variant", "init-scu")]),
            ("full", "m3", "paper", &[]),
            ("uniform sampling", "m3", "paper", &[("sampling", "uniform")]),
        ],
    ),
    Study {
        published: "none",
        ..errors(
            "ratios",
            "Figure 3",
            "Errors against missing ratios, MCAR",
            &[MAIN],
            &["mcar10", "mcar30", "mcar50", "mcar70"],
        )
    },
    settings(
        "peers",
        "Table 3",
        "Peers of a sample",
        &[
            ("1", "m3", "paper", &[("peers", "1")]),
            ("2", "m3", "paper", &[("peers", "2")]),
            ("5", "m3", "paper", &[]),
            ("10", "m3", "paper", &[("peers", "10")]),
            ("15", "m3", "paper", &[("peers", "15")]),
            ("20", "m3", "paper", &[("peers", "20")]),
        ],
    ),
    settings(
        "epsilon",
        "Table 3",
        "What stands for a value that is not shown",
        &[
            ("0", "m3", "paper", &[("epsilon", "0")]),
            ("1e-5", "m3", "paper", &[("epsilon", "1e-5")]),
            ("1e-4", "m3", "paper", &[]),
            ("1e-3", "m3", "paper", &[("epsilon", "1e-3")]),
        ],
    ),
    Study {
        question: Question::Seconds,
        ..errors("times", "Tables 4 and 10", "Running times", &[MAIN, FURTHER], &["mcar30"])
    },
    settings(
        "gnn",
        "Table 5",
        "Kinds of graph layers, for M3-Impute and GRAPE",
        &[
            ("m3 E-GraphSAGE", "m3", "paper", &[]),
            ("m3 GCN", "m3", "paper", &[("gnn", "gcn")]),
            ("m3 GAT", "m3", "paper", &[("gnn", "gat")]),
            ("m3 GraphSAGE", "m3", "paper", &[("gnn", "sage")]),
            ("grape E-GraphSAGE", "grape", "paper", &[]),
            ("grape GCN", "grape", "paper", &[("gnn", "gcn")]),
            ("grape GAT", "grape", "paper", &[("gnn", "gat")]),
            ("grape GraphSAGE", "grape", "paper", &[("gnn", "sage")]),
        ],
    ),
    Study {
        question: Question::Overview,
        compared: Compared::Nothing,
        ..errors("datasets", "Tables 6 and 9", "The tables", &[MAIN, FURTHER], &[])
    },
    Study {
        question: Question::Correlations,
        compared: Compared::Nothing,
        ..errors("correlations", "Figures 4 and 5", "Pearson correlations of columns", &[MAIN, FURTHER], &[])
    },
    errors("mar", "Table 7", "Errors, MAR 30 %", &[MAIN], &["mar30"]),
    errors("mnar", "Table 8", "Errors, MNAR 30 %", &[MAIN], &["mnar30"]),
    Study {
        published: "none",
        ..errors(
            "ratios-mar",
            "appendix",
            "Errors against missing ratios, MAR",
            &[MAIN],
            &["mar10", "mar30", "mar50", "mar70"],
        )
    },
    Study {
        published: "none",
        ..errors(
            "ratios-mnar",
            "appendix",
            "Errors against missing ratios, MNAR",
            &[MAIN],
            &["mnar10", "mnar30", "mnar50", "mnar70"],
        )
    },
    Study {
        question: Question::Labels,
        ..errors("downstream", "Table 11", "Errors of labels predicted from the filled table", &[MAIN], &["mcar30"])
    },
    settings(
        "widths",
        "Table 12",
        "Width of embeddings",
        &[
            ("32", "m3", "paper", &[("width", "32")]),
            ("64", "m3", "paper", &[("width", "64")]),
            ("128", "m3", "paper", &[]),
            ("256", "m3", "paper", &[("width", "256")]),
        ],
    ),
    settings(
        "layers",
        "Table 13",
        "Number of graph layers",
        &[
            ("1", "m3", "paper", &[("layers", "1")]),
            ("2", "m3", "paper", &[("layers", "2")]),
            ("3", "m3", "paper", &[]),
            ("4", "m3", "paper", &[("layers", "4")]),
        ],
    ),
    settings(
        "dropping",
        "Table 14",
        "Share of edges that an epoch drops",
        &[
            ("90 %", "m3", "paper", &[("keep", "0.1")]),
            ("70 %", "m3", "paper", &[("keep", "0.3")]),
            ("50 %", "m3", "paper", &[]),
            ("30 %", "m3", "paper", &[("keep", "0.7")]),
        ],
    ),
    errors("further", "appendix", "Errors on further tables, MCAR 30 %", &[FURTHER], &["mcar30"]),
    Study {
        published: "none",
        ..errors("further-mar", "appendix", "Errors on further tables, MAR 30 %", &[FURTHER], &["mar30"])
    },
    Study {
        published: "none",
        ..errors("further-mnar", "appendix", "Errors on further tables, MNAR 30 %", &[FURTHER], &["mnar30"])
    },
];

/// The study of a name.
///
/// # Errors
/// When there is none.
pub fn study(name: &str) -> Result<&'static Study> {
    STUDIES.iter().find(|s| s.name == name).ok_or_else(|| Error::Unknown {
        what: "study",
        got: name.to_owned(),
        valid: STUDIES.iter().map(|s| s.name).collect::<Vec<_>>().join(", "),
    })
}

impl Study {
    /// The settings that take part: those named, or else those of the study. Published networks that train for hours
    /// train for `epochs` where given, and then take part in comparisons without being named.
    ///
    /// # Errors
    /// When a method or preset is not there.
    pub fn settings(&self, named: Option<&[String]>, epochs: Option<u64>) -> Result<Vec<Setting>> {
        let mut settings = self.drawn(named, epochs)?;
        if named.is_none() && epochs.is_none() && matches!(self.compared, Compared::Methods) {
            settings.retain(|s| !s.takes_hours());
        }
        Ok(settings)
    }

    /// The settings that are drawn where there are rows: those that take part, and the networks that train for hours.
    /// Without `epochs`, the rows with the longest training on a table count.
    ///
    /// # Errors
    /// When a method or preset is not there.
    pub fn drawn(&self, named: Option<&[String]>, epochs: Option<u64>) -> Result<Vec<Setting>> {
        let mut settings: Vec<Setting> = match (named, &self.compared) {
            (_, Compared::Nothing) => Vec::new(),
            (Some(names), _) => names.iter().map(|name| Setting::parse(name)).collect::<Result<_>>()?,
            (None, Compared::Settings(_)) => self.fixed(),
            (None, Compared::Methods) => usual().collect(),
        };
        if let Some(epochs) = epochs {
            let slow = settings.iter_mut().filter(|s| s.takes_hours());
            slow.for_each(|s| s.params.push((EPOCHS.to_owned(), epochs.to_string())));
        }
        Ok(settings)
    }

    /// The settings that belong to the study; none where it compares methods.
    pub(crate) fn fixed(&self) -> Vec<Setting> {
        let Compared::Settings(settings) = self.compared else { return Vec::new() };
        let owned = |params: &[(&str, &str)]| params.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
        let setting = |&(name, method, preset, params): &FixedSetting| Setting {
            name: name.to_owned(),
            method: method.to_owned(),
            preset: preset.to_owned(),
            params: owned(params),
        };
        settings.iter().map(setting).collect()
    }

    /// The paper's tables in it.
    pub fn tables(&self) -> Vec<&'static str> {
        self.tables.concat()
    }

    /// Whether methods have to fill something for it.
    pub fn is_measured(&self) -> bool {
        !matches!(self.compared, Compared::Nothing)
    }
}

/// Settings that train for hours as they were published.
const HOURS: [(&str, &str); 3] = [("m3", "paper"), ("grape", "default"), ("grape", "paper")];
/// The parameter of their training time.
const EPOCHS: &str = "epochs";

/// The parameters of a row without the epochs, and those.
pub(crate) fn epochs_apart(settings: &str) -> (String, Option<u64>) {
    let (epochs, rest): (Vec<&str>, Vec<&str>) =
        settings.split(';').partition(|param| param.strip_prefix(EPOCHS).is_some_and(|left| left.starts_with('=')));
    (rest.join(";"), epochs.first().and_then(|param| param[EPOCHS.len() + 1..].parse().ok()))
}

/// The epochs of a row; those published are the longest.
fn trained(row: &Row) -> u64 {
    epochs_apart(&row.settings).1.unwrap_or(u64::MAX)
}

/// Every method, and the settings of its published figures.
fn usual() -> impl Iterator<Item = Setting> {
    METHODS.iter().flat_map(|spec| {
        let presets = spec.presets.iter().map(|p| p.0).enumerate();
        let taken = presets.filter(|(at, preset)| *at == 0 || *preset == "paper");
        taken.map(|(_, preset)| Setting::new(spec.name, preset))
    })
}

impl Setting {
    fn new(method: &str, preset: &str) -> Setting {
        let is_first = METHODS.iter().any(|m| m.name == method && m.presets.first().is_some_and(|p| p.0 == preset));
        let name = if is_first { method.to_owned() } else { format!("{method}:{preset}") };
        Setting { name, method: method.to_owned(), preset: preset.to_owned(), params: Vec::new() }
    }

    /// `METHOD` or `METHOD:PRESET`.
    ///
    /// # Errors
    /// When there is no such method or preset.
    ///
    /// ```
    /// use m3impute_paper::Setting;
    /// let setting = Setting::parse("knn:paper")?;
    /// assert_eq!((setting.method.as_str(), setting.preset.as_str()), ("knn", "paper"));
    /// assert!(Setting::parse("knn:poor").is_err());
    /// # Ok::<(), m3impute_paper::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Setting> {
        let (spec, preset) = m3impute::method_and_preset(text, None)?;
        Ok(Setting::new(spec.name, preset.as_deref().unwrap_or(spec.presets[0].0)))
    }

    fn takes_hours(&self) -> bool {
        HOURS.contains(&(&self.method, &self.preset))
    }

    /// The rows that were measured with it. Where it trains for hours and its epochs are not set, those with the longest
    /// training.
    pub(crate) fn made<'a>(&self, rows: impl Iterator<Item = &'a Row>) -> Vec<&'a Row> {
        let is_set = self.params.iter().any(|(name, _)| name == EPOCHS);
        let any = self.takes_hours() && !is_set;
        let params = self.params_text();
        let same = |row: &Row| {
            let (rest, _) = epochs_apart(&row.settings);
            (&row.method, &row.preset) == (&self.method, &self.preset)
                && if any { rest == params } else { row.settings == params }
        };
        let mut made: Vec<&Row> = rows.filter(|row| same(row)).collect();
        let longest = made.iter().map(|row| trained(row)).max();
        made.retain(|row| Some(trained(row)) == longest);
        made
    }

    /// The line of the paper with which it is compared.
    pub(crate) fn published_as(&self) -> &str {
        let is_method = self.name == self.method || self.name.starts_with(&format!("{}:", self.method));
        if is_method { &self.method } else { &self.name }
    }

    /// The parameters in one text: `peers=2;width=64`.
    pub fn params_text(&self) -> String {
        self.params.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(";")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_of_every_study_can_be_built() {
        for study in STUDIES {
            for setting in study.settings(None, Some(100)).unwrap() {
                let Ok(spec) = m3impute::method(&setting.method) else { panic!("{}", setting.method) };
                let settings = m3impute::Settings {
                    preset: Some(setting.preset.clone()),
                    params: setting.params.clone(),
                    ..m3impute::Settings::default()
                };
                assert!((spec.build)(&settings).is_ok(), "{} {setting:?}", study.name);
            }
        }
    }

    #[test]
    fn names_are_used_once_and_tables_are_those_of_the_paper() {
        let names: std::collections::HashSet<_> = STUDIES.iter().map(|s| s.name).collect();
        assert_eq!(names.len(), STUDIES.len());
        assert_eq!((MAIN.len(), FURTHER.len(), study("datasets").unwrap().tables().len()), (8, 17, 25));
        assert!(MAIN.iter().chain(FURTHER).all(|t| study("datasets").unwrap().tables().contains(t)));
    }

    #[test]
    fn a_comparison_of_methods_leaves_out_those_that_train_for_hours_unless_their_epochs_are_given() {
        let names = |epochs: Option<u64>| -> Vec<(String, String)> {
            let settings = study("main").unwrap().settings(None, epochs).unwrap();
            settings.into_iter().map(|s| (s.name.clone(), s.params_text())).collect()
        };
        let has =
            |of: &[(String, String)], name: &str, params: &str| of.contains(&(name.to_owned(), params.to_owned()));
        let quick = names(None);
        assert!(has(&quick, "m3", "") && has(&quick, "knn:paper", ""));
        assert!(!quick.iter().any(|(name, _)| name == "grape" || name == "m3:paper"));
        let all = names(Some(50));
        assert!(has(&all, "m3", "") && has(&all, "grape", "epochs=50") && has(&all, "m3:paper", "epochs=50"));
    }
}
