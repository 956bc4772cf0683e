//! Forests in model files.

use super::{Aggregate, Forest};
use crate::tree::{LEAF, Node};
use m3impute_core::{Error, ModelFile, Result, Tensor};
use std::collections::BTreeMap;

impl Forest {
    /// Writes the forest into tensors whose names start with `prefix`.
    pub fn store(&self, prefix: &str, tensors: &mut BTreeMap<String, Tensor>) {
        let mut floats = |name: &str, values: Vec<f32>| {
            tensors.insert(format!("{prefix}{name}"), Tensor::F32(vec![values.len()], values));
        };
        floats("orders", self.orders.concat());
        floats("thresholds", self.nodes.iter().map(|n| n.threshold).collect());
        floats("values", self.values.clone());
        floats("shares", self.shares.clone());
        let mut wholes = |name: &str, values: Vec<u32>| {
            tensors.insert(format!("{prefix}{name}"), Tensor::U32(vec![values.len()], values));
        };
        wholes("roots", self.roots.clone());
        wholes("features", self.nodes.iter().map(|n| n.feature).collect());
        wholes("rights", self.nodes.iter().map(|n| n.right).collect());
        wholes("starts", self.starts.clone());
        let aggregate = u8::from(self.aggregate == Aggregate::Median);
        tensors.insert(format!("{prefix}aggregate"), Tensor::U8(vec![1], vec![aggregate]));
    }

    /// The forest of feature `f` back. `levels` says how many levels each feature has, 0 for numbers. Every walk ends at
    /// a leaf: children stand after their parents and before the next tree.
    ///
    /// # Errors
    /// When something is not there, or points to nowhere.
    pub fn restore(file: &ModelFile, prefix: &str, f: usize, levels: &[usize]) -> Result<Forest> {
        let damaged = |what: &str| Error::damaged(format!("the forest of feature {f}: {what}"));
        let floats = |name: &str| file.f32s(&format!("{prefix}{name}")).map(|t| t.1);
        let wholes = |name: &str| file.u32s(&format!("{prefix}{name}")).map(|t| t.1);
        let (roots, features, rights) = (wholes("roots")?, wholes("features")?, wholes("rights")?);
        let (thresholds, starts) = (floats("thresholds")?, wholes("starts")?);
        let (values, shares) = (floats("values")?, floats("shares")?);
        let aggregate = match file.u8s(&format!("{prefix}aggregate"))?.1 {
            [0] => Aggregate::Mean,
            [1] => Aggregate::Median,
            _ => return Err(damaged("an unknown aggregate")),
        };
        if features.len() != rights.len() || features.len() != thresholds.len() || values.len() != shares.len() {
            return Err(damaged("tensors of different lengths"));
        }
        let nodes: Vec<Node> = features
            .iter()
            .zip(thresholds)
            .zip(rights)
            .map(|((&feature, &threshold), &right)| Node { feature, threshold, right })
            .collect();

        if roots.first() != Some(&0) || roots.windows(2).any(|r| r[0] >= r[1]) {
            return Err(damaged("its roots"));
        }
        let ends = roots[1..].iter().map(|&r| r as usize).chain([nodes.len()]);
        for (&root, end) in roots.iter().zip(ends) {
            let tree = nodes.get(root as usize..end).ok_or_else(|| damaged("a root after the last node"))?;
            for (at, node) in tree.iter().enumerate() {
                let at = root as usize + at;
                let sound = if node.feature == LEAF {
                    (node.right as usize) + 1 < starts.len()
                } else {
                    (node.feature as usize) < levels.len()
                        && node.right as usize > at + 1
                        && (node.right as usize) < end
                };
                if !sound {
                    return Err(damaged(&format!("node {at} points to nowhere")));
                }
            }
            if tree.last().is_none_or(|node| node.feature != LEAF) {
                return Err(damaged("a tree without an end"));
            }
        }
        let filled = starts.windows(2).all(|s| s[0] < s[1]);
        if !filled || starts.last().is_none_or(|&s| s as usize != values.len()) {
            return Err(damaged("its leaves"));
        }
        let value_fits = |v: f32| if levels[f] > 0 { (0.0..levels[f] as f32).contains(&v) } else { v.is_finite() };
        if !values.iter().all(|&v| value_fits(v)) || !shares.iter().all(|&s| s > 0.0 && s <= 1.01) {
            return Err(damaged("the values of its leaves"));
        }

        let flat = floats("orders")?;
        if flat.len() != levels.iter().sum::<usize>() {
            return Err(damaged("the order of levels"));
        }
        let mut at = 0;
        let mut orders = Vec::with_capacity(levels.len());
        for &levels in levels {
            orders.push(flat[at..at + levels].to_vec());
            at += levels;
        }
        Ok(Forest {
            levels: levels[f],
            aggregate,
            orders,
            roots: roots.to_vec(),
            nodes,
            starts: starts.to_vec(),
            values: values.to_vec(),
            shares: shares.to_vec(),
        })
    }
}
