//! Settings of `m3` and `grape` beyond the contract: every variant, layer, sampling and way with levels, on a
//! training short enough for a test.

use m3impute_core::{FinishChoice, Imputer, MethodSpec, ModelFile, Run, Settings, Table, Tensor};
use m3impute_gnn::grape;
use m3impute_stack::m3;
use m3impute_testkit::tables;

const ROWS: usize = 40;

/// The method with these parameters, a few epochs and narrow states.
fn build(spec: &MethodSpec, params: &[(&str, &str)]) -> Box<dyn Imputer> {
    let quick = [("epochs", "5"), ("width", "8"), ("layers", "2")];
    let params = quick.iter().chain(params).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    // After so few epochs most predictions are out of range: clipped they would be equal.
    let finish = FinishChoice { clip: Some(false), ..FinishChoice::default() };
    (spec.build)(&Settings { params, finish, preset: Some("paper".to_owned()) }).unwrap()
}

fn impute(spec: &MethodSpec, params: &[(&str, &str)], table: &Table) -> Table {
    build(spec, params).impute(table, &mut Run::new(3, 1).unwrap()).unwrap().table
}

/// Every cell to fill is filled: integers whole, levels among those there are.
fn check_filled(table: &Table, what: &str) {
    for (j, column) in table.schema().columns().iter().enumerate().filter(|(_, c)| c.is_filled()) {
        for i in 0..table.rows() {
            let value = table.number(i, j);
            assert!(table.observed().get(i, j) && value.is_finite(), "{what}: `{}`, row {i}", column.name);
            if column.kind.has_levels() {
                let level = value.fract() == 0.0 && value >= 0.0 && value < column.levels.len() as f64;
                assert!(level, "{what}: `{}`, row {i}, is {value}", column.name);
            }
        }
    }
}

/// All filled numbers, bit by bit.
fn bits(table: &Table) -> Vec<u64> {
    let columns = table.schema().columns();
    let filled = (0..table.cols()).filter(|&j| columns[j].is_filled());
    filled.flat_map(|j| (0..table.rows()).map(move |i| table.number(i, j).to_bits())).collect()
}

/// Fills the table in every way, and expects that no two ways agree.
fn check_all_differ(spec: &MethodSpec, ways: &[Vec<(&str, &str)>]) {
    let table = tables::mixed(ROWS, 0);
    let filled: Vec<Vec<u64>> = ways
        .iter()
        .map(|way| {
            let filled = impute(spec, way, &table);
            check_filled(&filled, &format!("{} {way:?}", spec.name));
            bits(&filled)
        })
        .collect();
    for (i, one) in filled.iter().enumerate() {
        for (j, other) in filled.iter().enumerate().skip(i + 1) {
            assert!(one != other, "{}: {:?} does what {:?} does", spec.name, ways[i], ways[j]);
        }
    }
}

fn ways<'a>(name: &'a str, values: &[&'a str]) -> Vec<Vec<(&'a str, &'a str)>> {
    values.iter().map(|value| vec![(name, *value)]).collect()
}

#[test]
fn each_variant_fills_in_its_own_way() {
    check_all_differ(&m3::SPEC, &ways("variant", &["init", "init-fcu", "init-scu", "full"]));
}

#[test]
fn each_layer_fills_in_its_own_way() {
    check_all_differ(&m3::SPEC, &ways("gnn", &["egsage", "sage", "gcn", "gat"]));
    check_all_differ(&grape::SPEC, &ways("gnn", &["egsage", "sage", "gcn", "gat"]));
}

#[test]
fn each_sampling_and_number_of_peers_fills_in_its_own_way() {
    let mut ways = ways("sampling", &["cosine", "uniform", "shared"]);
    ways.push(vec![("peers", "1")]);
    ways.push(vec![("peers", "9")]);
    check_all_differ(&m3::SPEC, &ways);
}

#[test]
fn every_variant_with_every_layer_is_no_trouble() {
    let table = tables::mixed(ROWS, 0);
    for variant in ["init", "init-fcu", "init-scu", "full"] {
        for gnn in ["sage", "gcn", "gat"] {
            for discrete in ["mse", "softmax"] {
                let way = [("variant", variant), ("gnn", gnn), ("discrete", discrete)];
                check_filled(&impute(&m3::SPEC, &way, &table), &format!("{way:?}"));
            }
        }
    }
}

#[test]
fn softmax_survives_fit_save_load_and_transform() {
    let (table, rows) = (tables::mixed(ROWS, 0), tables::mixed(ROWS, 1));
    for spec in [&m3::SPEC, &grape::SPEC] {
        let method = build(spec, &[("discrete", "softmax")]);
        let mut run = Run::new(3, 1).unwrap();
        let fitted = method.as_inductive().unwrap().fit(&table, &mut run).unwrap();
        let mut file = Vec::new();
        fitted.save(&mut file).unwrap();
        let loaded = (spec.load)(&ModelFile::read(&file).unwrap()).unwrap();
        let before = fitted.transform(&rows, &mut run).unwrap().table;
        let after = loaded.transform(&rows, &mut run).unwrap().table;
        check_filled(&after, spec.name);
        assert_eq!(bits(&before), bits(&after), "{}", spec.name);
        let mut again = Vec::new();
        loaded.save(&mut again).unwrap();
        assert!(file == again, "{}: a model that was read is written as it was", spec.name);
    }
}

#[test]
fn softmax_learns_levels_that_follow_from_others() {
    // The level follows from the number: a missing level has one right value.
    use m3impute_core::{Column, ColumnSpec, Kind, Schema};
    let schema = Schema::new(vec![
        ColumnSpec::new("x", Kind::Continuous),
        ColumnSpec::with_levels("side", Kind::Categorical, ["low", "middle", "high"]),
    ])
    .unwrap();
    let side = |i: u32| if i % 10 < 3 { 0 } else { 1 + u32::from(i % 10 > 6) };
    let x = Column::numbers((0..90).map(|i| Some(f64::from(i % 10))));
    let sides = Column::codes((0..90).map(|i| (i % 9 != 4).then(|| side(i))));
    let table = Table::new(schema, vec![x, sides]).unwrap();
    for spec in [&m3::SPEC, &grape::SPEC] {
        let params = [("epochs", "300"), ("width", "16"), ("learning_rate", "0.01"), ("discrete", "softmax")];
        let filled = impute(spec, &params, &table);
        let right = (0..90).filter(|i| i % 9 == 4 && filled.number(*i as usize, 1) == f64::from(side(*i))).count();
        assert!(right >= 8, "{}: {right} of 10 levels are right", spec.name);
    }
}

/// `m3` with little effort.
fn quick_m3(folds: &str) -> Box<dyn Imputer> {
    let params = [("folds", folds), ("steps", "20"), ("trees", "4")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    let settings = Settings { params: params.to_vec(), preset: Some("fast".to_owned()), ..Settings::default() };
    (m3::SPEC.build)(&settings).unwrap()
}

#[test]
fn combinations_that_are_present_rule_out_values_in_a_factorial_design() {
    use m3impute_core::{Column, ColumnSpec, Kind, Schema};
    // Every combination of six, six and six values once; one cell in twelve is missing, never two in a row.
    let value = |i: usize, j: usize| (i / [1, 6, 36][j] % 6) as f64;
    let is_missing = |i: usize, j: usize| (i * 7 + i / 11).is_multiple_of(4) && i * 5 % 3 == j;
    let schema = ["a", "b", "c"].map(|name| ColumnSpec::new(name, Kind::Integer));
    let column = |j: usize| Column::numbers((0..216).map(|i| (!is_missing(i, j)).then(|| value(i, j))));
    let table = Table::new(Schema::new(schema.to_vec()).unwrap(), (0..3).map(column).collect()).unwrap();
    let method = quick_m3("4");
    let mut run = Run::new(0, 2).unwrap();
    let fitted = method.as_inductive().unwrap().fit(&table, &mut run).unwrap();
    let filled = fitted.transform(&table, &mut run).unwrap().table;
    let missing: Vec<(usize, usize)> =
        (0..216).flat_map(|i| (0..3).map(move |j| (i, j))).filter(|&(i, j)| is_missing(i, j)).collect();
    let right = missing.iter().filter(|&&(i, j)| filled.number(i, j) == value(i, j)).count();
    // One in six by luck.
    assert!(3 * right > missing.len(), "{right} of {}", missing.len());

    let mut file = Vec::new();
    fitted.save(&mut file).unwrap();
    let file = ModelFile::read(&file).unwrap();
    let loaded = (m3::SPEC.load)(&file).unwrap();
    assert_eq!(bits(&loaded.transform(&table, &mut run).unwrap().table), bits(&filled));
    for (name, tensor) in file.tensors.iter().filter(|(name, _)| name.starts_with("factorial.")) {
        let mut damaged = ModelFile { header: file.header.clone(), tensors: file.tensors.clone() };
        match tensor {
            Tensor::U32(shape, cells) => {
                damaged.tensors.insert(name.clone(), Tensor::U32(shape.clone(), vec![u32::MAX; cells.len()]))
            }
            _ => damaged.tensors.insert(name.clone(), Tensor::F32(vec![0], Vec::new())),
        };
        assert!((m3::SPEC.load)(&damaged).is_err(), "{name}");
    }
}
