//! BERT and MPNet, described by the `config.json` that comes with their weights.

use crate::layers::{
    Tables, TransformerShape, cross_entropy, dropout, embedding, first_token, linear, norm, transformer,
};
use crate::parameters::Start;
use crate::program::op::DistanceBias;
use crate::program::{Function, Input, ModelProgram, Op, ProgramBuilder};

/// Buckets and furthest distance of MPNet's attention bias; its published configurations give the bucket count only.
const FURTHEST: usize = 128;

/// An encoder with a classifier on its first token.
#[derive(Clone, Debug, PartialEq)]
pub struct BertEncoder {
    pub(crate) tables: Tables,
    pub(crate) width: usize,
    pub(crate) heads: usize,
    pub(crate) inner: usize,
    pub(crate) layers: usize,
    pub(crate) epsilon: f64,
    pub(crate) dropout: f64,
    /// Buckets of MPNet's shared distance bias; BERT has none.
    pub(crate) distance_buckets: Option<usize>,
    pub(crate) sequence: usize,
    pub(crate) classes: usize,
}

impl BertEncoder {
    /// `bert-base-uncased` for two classes without dropout: what the benchmarks run.
    pub fn bert_base(sequence: usize) -> Self {
        BertEncoder {
            tables: Tables { vocabulary: 30_522, positions: 512, types: 2, first_position: 0 },
            width: 768,
            heads: 12,
            inner: 3_072,
            layers: 12,
            epsilon: 1e-12,
            dropout: 0.0,
            distance_buckets: None,
            sequence,
            classes: 2,
        }
    }

    /// `all-MiniLM-L6-v2` for two classes without dropout.
    pub fn minilm(sequence: usize) -> Self {
        BertEncoder { width: 384, inner: 1_536, layers: 6, ..Self::bert_base(sequence) }
    }

    /// The passes for batches of `samples` samples.
    pub fn program(&self, samples: usize) -> ModelProgram {
        let &BertEncoder { width, heads, inner, epsilon, dropout: rate, sequence, .. } = self;
        let mut builder = ProgramBuilder::new(Input::Tokens { sequence }, samples, self.classes);
        let rows = samples * sequence;
        let mut x = builder.within("embeddings", |builder| {
            let x = embedding(builder, self.tables, sequence, width);
            norm(builder, x, "LayerNorm", [rows, width], epsilon)
        });
        let distance_bias = self.distance_buckets.map(|buckets| {
            let name = "encoder.relative_attention_bias.weight";
            let table = builder.parameter(name, &[buckets, heads], Start::Constant(0.0));
            DistanceBias { table, buckets, furthest: FURTHEST }
        });
        if rate > 0.0 {
            x = dropout(&mut builder, x, rows * width, rate);
        }
        let shape = TransformerShape {
            samples,
            sequence,
            width,
            heads,
            inner,
            epsilon,
            dropout: rate,
            distance_bias,
        };
        for i in 0..self.layers {
            x = transformer(&mut builder, x, &format!("encoder.layer.{i}"), shape);
        }
        let x = first_token(&mut builder, x, sequence, width);
        let x = linear(&mut builder, x, "pooler.dense", [samples, width, width], Function::Tanh);
        let logits = cross_entropy(&mut builder, x, "classifier", width);
        if let Some(DistanceBias { table, buckets, .. }) = distance_bias {
            // Before all that adds to it.
            builder.back_by(move |builder, d, _| {
                builder.push(Op::ClearGradient { offset: table, words: buckets * heads });
                Some(d)
            });
        }
        builder.finish(logits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bert_base_has_its_published_size() {
        // bert-base-uncased: 109,482,240 with its pooler, and a classifier of 768 x 2 + 2.
        assert_eq!(BertEncoder::bert_base(128).program(1).layout.count(), 109_482_240 + 1_538);
    }
}
