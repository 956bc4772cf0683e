//! An explanation as JSON.

use super::{CellValue, Explanation, INTERVAL_LEVEL};
use serde_json::{Value, json};

impl Explanation {
    /// The explanation as JSON. `row` is what the interface calls the row, `number` makes a number of a column, given by its
    /// place in the table, what it is in that interface. Rows of the training table are counted from `first`.
    pub fn json(&self, row: impl Into<Value>, first: usize, number: impl Fn(usize, f64) -> Value) -> Value {
        let value = |column: usize, value: &CellValue| match value {
            CellValue::Number(x) => number(column, *x),
            CellValue::Level(level) => Value::from(level.as_str()),
        };
        let own = |of: &CellValue| value(self.column, of);
        let interval = self
            .interval
            .as_ref()
            .map(|[lower, upper]| json!({"level": INTERVAL_LEVEL, "lower": own(lower), "upper": own(upper)}));
        let probabilities = self.probabilities.iter().map(|(level, p)| json!({"level": level, "probability": p}));
        let members = self.members.iter().map(|m| {
            json!({"name": m.name, "weight": m.weight, "predicted": own(&m.predicted), "probability": m.probability})
        });
        let influences = self.influences.iter().map(|i| {
            json!({
                "column": i.name, "value": value(i.column, &i.value), "without": own(&i.without), "change": i.change,
                "probability_change": i.probability_change,
            })
        });
        let donors = self.donors.as_ref().map(|donors| {
            let cell = |cell: &super::DonorCell| {
                json!({"column": cell.name, "value": cell.value.as_ref().map(|of| value(cell.column, of))})
            };
            let donor = |donor: &super::Donor| {
                let deciding: Vec<Value> = donor.deciding.iter().map(cell).collect();
                let row = donor.row + first;
                json!({"row": row, "proximity": donor.proximity, "value": own(&donor.value), "deciding": deciding})
            };
            donors.iter().map(donor).collect::<Vec<_>>()
        });
        json!({
            "row": row.into(), "column": self.name, "kind": self.kind, "filled": own(&self.filled),
            "fallback": self.fallback, "interval": interval, "probabilities": probabilities.collect::<Vec<_>>(),
            "members": members.collect::<Vec<_>>(), "influences": influences.collect::<Vec<_>>(), "donors": donors,
        })
    }
}
