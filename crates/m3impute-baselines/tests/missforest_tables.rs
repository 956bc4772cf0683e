//! missForest on published tables: its error on the published holes. The tables lie beside the workspace, not in it;
//! where they are not there, each test says that it was skipped.

use m3impute_baselines::METHODS;
use m3impute_core::{Column, ColumnSpec, Kind, Observed, Run, Schema, Settings, Table, score};
use std::fs::read_to_string;
use std::path::Path;

/// The complete table, the one with holes, and which cells are shown.
fn read(name: &str) -> Option<(Table, Table, Observed)> {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    if !shared.is_dir() {
        eprintln!("SKIPPED: `{name}` was not checked, because there is no folder {}", shared.display());
        return None;
    }
    let csv = read_to_string(shared.join(format!("datasets/{name}.csv"))).expect("the table is in the folder");
    let holes = read_to_string(shared.join(format!("masks/{name}.mcar30.txt"))).expect("the holes are in the folder");
    let mut lines = csv.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let m = header.len() - 1; // the last column is the target of another task
    let rows: Vec<Vec<f64>> =
        lines.map(|line| line.split(',').map(|cell| cell.trim().parse().expect("a number")).collect()).collect();
    let specs = header[..m].iter().map(|name| ColumnSpec::new(*name, Kind::Continuous)).collect();
    let columns = (0..m).map(|j| Column::from_numbers(rows.iter().map(|row| row[j]).collect())).collect();
    let truth = Table::new(Schema::new(specs).unwrap(), columns).unwrap();
    let (mut table, mut shown) = (truth.clone(), Observed::all(rows.len(), m));
    for (i, line) in holes.lines().enumerate() {
        for (j, _) in line.chars().enumerate().filter(|(_, c)| *c == '0') {
            table.hide(i, j);
            shown.set(i, j, false);
        }
    }
    Some((truth, table, shown))
}

/// Fills the table and checks ten times the mean absolute error, each column scaled by its complete range.
fn check(name: &str, bound: f64) {
    let Some((truth, table, shown)) = read(name) else { return };
    let spec = METHODS.iter().find(|m| m.name == "missforest").unwrap();
    let imputer = (spec.build)(&Settings::default()).unwrap();
    let filled = imputer.impute(&table, &mut Run::new(0, 2).unwrap()).unwrap();
    let error = 10.0 * score(&truth, &filled.table, &shown).0.mae.unwrap();
    println!("{name}: {error:.3}, at most {bound}");
    assert!(error <= bound, "{name}: expected at most {bound}, got {error:.3}");
}

#[test]
fn yacht_is_filled_as_well_as_it_must_be() {
    check("yacht", 1.52);
}

#[test]
fn housing_is_filled_as_well_as_it_must_be() {
    check("housing", 0.63);
}

#[test]
#[ignore = "takes several seconds"]
fn energy_is_filled_as_well_as_it_must_be() {
    check("energy", 1.54);
}

#[test]
#[ignore = "takes several seconds"]
fn concrete_is_filled_as_well_as_it_must_be() {
    check("concrete", 0.87);
}

#[test]
#[ignore = "takes several seconds"]
fn wine_is_filled_as_well_as_it_must_be() {
    check("wine", 0.60);
}
