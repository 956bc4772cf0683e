//! Boosted models in model files.

use super::{Boosting, Node};
use crate::tree::LEAF;
use m3impute_core::{Error, ModelFile, Result, Tensor};
use std::collections::BTreeMap;

impl Boosting {
    /// Writes the model into tensors whose names start with `prefix`.
    pub fn store(&self, prefix: &str, tensors: &mut BTreeMap<String, Tensor>) {
        let mut put = |name: &str, tensor: Tensor| tensors.insert(format!("{prefix}{name}"), tensor);
        let floats = |values: Vec<f32>| Tensor::F32(vec![values.len()], values);
        let wholes = |values: Vec<u32>| Tensor::U32(vec![values.len()], values);
        put("orders", floats(self.orders.concat()));
        put("base", floats(self.base.clone()));
        put("watched_loss", floats(vec![self.watched_loss]));
        put("thresholds", floats(self.nodes.iter().map(|n| n.threshold).collect()));
        put("roots", wholes(self.roots.clone()));
        put("features", wholes(self.nodes.iter().map(|n| n.feature).collect()));
        put("rights", wholes(self.nodes.iter().map(|n| n.right).collect()));
        let sides = self.nodes.iter().map(|n| u8::from(n.missing_left)).collect();
        put("missing_left", Tensor::U8(vec![self.nodes.len()], sides));
    }

    /// The model of feature `f` back, without its curve. `levels` says how many levels each feature has, 0 for numbers;
    /// `classes` how many classes are learnt, 0 for numbers. Every walk ends at a leaf: children stand after their
    /// parents and before the next tree.
    ///
    /// # Errors
    /// When something is not there, or points to nowhere.
    pub fn restore(file: &ModelFile, prefix: &str, f: usize, levels: &[usize], classes: usize) -> Result<Boosting> {
        let damaged = |what: &str| Error::damaged(format!("the boosted trees of feature {f}: {what}"));
        let floats = |name: &str| file.f32s(&format!("{prefix}{name}")).map(|t| t.1);
        let wholes = |name: &str| file.u32s(&format!("{prefix}{name}")).map(|t| t.1);
        let (base, roots, features) = (floats("base")?, wholes("roots")?, wholes("features")?);
        let (thresholds, rights) = (floats("thresholds")?, wholes("rights")?);
        let sides = file.u8s(&format!("{prefix}missing_left"))?.1;
        let outputs = if classes > 2 { classes } else { 1 };
        if base.len() != outputs || base.iter().any(|b| !b.is_finite()) || !roots.len().is_multiple_of(outputs) {
            return Err(damaged("its outputs"));
        }
        let n = features.len();
        if rights.len() != n || thresholds.len() != n || sides.len() != n {
            return Err(damaged("tensors of different lengths"));
        }
        let nodes: Vec<Node> = (0..n)
            .map(|k| Node {
                feature: features[k],
                threshold: thresholds[k],
                right: rights[k],
                missing_left: sides[k] != 0,
            })
            .collect();
        let starts_well = roots.first().map_or(n == 0, |&first| first == 0);
        if !starts_well || roots.windows(2).any(|r| r[0] >= r[1]) {
            return Err(damaged("its roots"));
        }
        let ends = roots.iter().skip(1).map(|&r| r as usize).chain([n]);
        for (&root, end) in roots.iter().zip(ends) {
            let tree = nodes.get(root as usize..end).ok_or_else(|| damaged("a root after the last node"))?;
            for (at, node) in tree.iter().enumerate() {
                let at = root as usize + at;
                let sound = node.threshold.is_finite()
                    && (node.feature == LEAF
                        || (node.feature as usize) < levels.len()
                            && node.right as usize > at + 1
                            && (node.right as usize) < end);
                if !sound {
                    return Err(damaged(&format!("node {at} points to nowhere")));
                }
            }
            if tree.last().is_none_or(|node| node.feature != LEAF) {
                return Err(damaged("a tree without an end"));
            }
        }
        let [watched_loss] = *floats("watched_loss")? else { return Err(damaged("its loss")) };
        let mut flat = floats("orders")?;
        if flat.len() != levels.iter().sum::<usize>() {
            return Err(damaged("the order of levels"));
        }
        let mut orders = Vec::with_capacity(levels.len());
        for &levels in levels {
            let (order, rest) = flat.split_at(levels);
            orders.push(order.to_vec());
            flat = rest;
        }
        Ok(Boosting {
            classes,
            base: base.to_vec(),
            orders,
            roots: roots.to_vec(),
            nodes,
            curve: Vec::new(),
            watched_loss,
        })
    }
}
