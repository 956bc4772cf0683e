//! Fill the holes of a table: the methods, the tables and the contract in one crate.
//!
//! A [`Table`] has typed columns and holes. A method of the registry ([`METHODS`]) fills the holes; observed cells come
//! back bit for bit, integers are filled whole, categories with levels they have. The same seed gives the same bytes on
//! any number of threads.
//!
//! ```
//! use m3impute::{Column, ColumnSpec, Kind, Run, Schema, Settings, Table};
//!
//! // A table of two columns; `None` is a hole.
//! let schema = Schema::new(vec![
//!     ColumnSpec::new("age", Kind::Integer),
//!     ColumnSpec::with_levels("smokes", Kind::Categorical, ["no", "yes"]),
//! ])?;
//! let age = Column::numbers([Some(31.0), None, Some(40.0), Some(52.0)]);
//! let smokes = Column::codes([Some(0), Some(1), Some(1), None]);
//! let table = Table::new(schema, vec![age, smokes])?;
//!
//! // Fill it.
//! let method = (m3impute::method("median")?.build)(&Settings::default())?;
//! let imputation = method.impute(&table, &mut Run::new(0, 1)?)?;
//! assert_eq!(imputation.table.number(1, 0), 40.0);
//! assert!(imputation.fallbacks.is_empty());
//!
//! // Or fit once, keep the model in a file, and fill rows that come later.
//! let inductive = method.as_inductive().ok_or("`median` can be fitted")?;
//! let mut file = Vec::new();
//! inductive.fit(&table, &mut Run::new(0, 1)?)?.save(&mut file)?;
//! let model = m3impute::load(&file)?;
//! let filled = model.transform(&table.select_rows(&[3]), &mut Run::new(0, 1)?)?;
//! assert_eq!(filled.table.number(0, 1), 1.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Everything of [`m3impute_core`] is here too: how tables become numbers ([`encode`]), and how holes are made to
//! measure methods ([`missing`]).

pub use m3impute_core::*;

/// The guide for Rust programs, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/rust.md")]
pub struct RustGuide;

/// Every method there is.
pub static METHODS: &[&MethodSpec] = &{
    const PARTS: [&[&MethodSpec]; 4] =
        [m3impute_baselines::METHODS, m3impute_stack::METHODS, m3impute_gnn::METHODS, m3impute_deep::METHODS];
    let mut all = [PARTS[0][0]; PARTS[0].len() + PARTS[1].len() + PARTS[2].len() + PARTS[3].len()];
    let (mut at, mut part) = (0, 0);
    while part < PARTS.len() {
        let mut of_part = 0;
        while of_part < PARTS[part].len() {
            all[at] = PARTS[part][of_part];
            of_part += 1;
            at += 1;
        }
        part += 1;
    }
    all
};

/// The method that fills a table when nobody says which.
pub const DEFAULT_METHOD: &str = "m3";

/// The method of that name.
///
/// ```
/// assert_eq!(m3impute::method("mean")?.name, "mean");
/// let error = m3impute::method("medain").unwrap_err();
/// assert_eq!(error.hint(), Some(m3impute::Hint::DidYouMean { name: "median".to_owned() }));
/// # Ok::<(), m3impute::Error>(())
/// ```
///
/// # Errors
/// When there is no such method; the nearest name is suggested.
pub fn method(name: &str) -> Result<&'static MethodSpec> {
    METHODS.iter().copied().find(|m| m.name == name).ok_or_else(|| Error::UnknownMethod {
        method: name.to_owned(),
        nearest: nearest(name, METHODS.iter().map(|m| m.name)),
    })
}

/// A method by name, and its preset where one is asked for: after a colon, as in `m3:fast`, or as `preset`.
///
/// ```
/// let (spec, preset) = m3impute::method_and_preset("m3:fast", None)?;
/// assert_eq!((spec.name, preset.as_deref()), ("m3", Some("fast")));
/// assert_eq!(m3impute::method_and_preset("m3", None)?.1, None);
/// assert!(m3impute::method_and_preset("m3:fast", Some("best")).is_err());
/// # Ok::<(), m3impute::Error>(())
/// ```
///
/// # Errors
/// When there is no such method, or no such preset of it, or two different presets are named.
pub fn method_and_preset(name: &str, preset: Option<&str>) -> Result<(&'static MethodSpec, Option<String>)> {
    let (key, own) = name.split_once(':').map_or((name, None), |(key, own)| (key, Some(own)));
    let spec = method(key)?;
    if let (Some(own), Some(other)) = (own, preset.filter(|preset| own != Some(*preset))) {
        let expected = format!("`{own}`, as in `{name}`, or none");
        return Err(Error::Request { what: "preset".to_owned(), expected, got: other.to_owned() });
    }
    let preset = own.or(preset).map(str::to_owned);
    spec.preset(&Settings { preset: preset.clone(), ..Settings::default() })?;
    Ok((spec, preset))
}

/// The model that the bytes of a file hold.
///
/// # Errors
/// When the bytes are no model file, are damaged, or are of a version or method that is not known.
pub fn load(bytes: &[u8]) -> Result<Box<dyn FittedImputer>> {
    load_file(&ModelFile::read(bytes)?)
}

/// The model that a file in memory holds.
///
/// # Errors
/// When the method is not known, or the file does not hold what it needs.
pub fn load_file(file: &ModelFile) -> Result<Box<dyn FittedImputer>> {
    let name = &file.header.method;
    let Some(spec) = METHODS.iter().find(|m| m.name == name) else {
        return Err(Error::ModelFile { reason: format!("it is of method `{name}`, which this version does not have") });
    };
    (spec.load)(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_method_is_there_and_names_are_unique() {
        assert!(method(DEFAULT_METHOD).is_ok());
        for (at, spec) in METHODS.iter().enumerate() {
            assert!(METHODS[at + 1..].iter().all(|other| other.name != spec.name), "`{}` stands twice", spec.name);
        }
    }

    #[test]
    fn a_preset_stands_after_the_method_or_by_itself() {
        let of = |name, preset| method_and_preset(name, preset).map(|(spec, preset)| (spec.name, preset));
        assert_eq!(of("knn:paper", None).unwrap(), ("knn", Some("paper".to_owned())));
        assert_eq!(of("knn:paper", Some("paper")).unwrap(), of("knn", Some("paper")).unwrap());
        let message = |name, preset| of(name, preset).unwrap_err().to_string();
        assert!(message("m3:fastest", None).ends_with("expected one of `balanced`, `fast`, `best`, `paper`"));
        assert_eq!(message("m3:fast", Some("best")), "preset: expected `fast`, as in `m3:fast`, or none, got `best`");
        assert!(message("m4:fast", None).contains("`m4`") && message("m3:", None).contains("no preset ``"));
    }

    #[test]
    fn a_model_of_an_unknown_method_is_refused_by_name() {
        let schema = Schema::new(vec![ColumnSpec::new("x", Kind::Continuous)]).unwrap();
        let table = Table::new(schema, vec![Column::numbers([Some(1.0), None, Some(3.0)])]).unwrap();
        let mut run = Run::new(0, 1).unwrap();
        let mean = (method("mean").unwrap().build)(&Settings::default()).unwrap();
        let mut file = mean.as_inductive().unwrap().fit(&table, &mut run).unwrap().to_file().unwrap();
        assert!(load_file(&file).is_ok());
        file.header.method = "oracle".to_owned();
        let error = load_file(&file).unwrap_err().to_string();
        assert_eq!(error, "not a usable model file: it is of method `oracle`, which this version does not have");
        assert!(load(b"rubbish").is_err());
    }
}
