//! BERT and MPNet, described by the `config.json` that comes with their weights.

use crate::layers::embedding::Tables;
use crate::layers::transformer::TransformerShape;
use crate::layers::{
    CrossEntropy, Dropout, Embedding, FirstToken, Layer, Linear, Norm, Sequence, Transformer,
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
        let mut builder =
            ProgramBuilder::new(Input::Tokens { sequence: self.sequence }, samples, self.classes);
        let rows = samples * self.sequence;
        let shape = TransformerShape {
            samples,
            sequence: self.sequence,
            width: self.width,
            heads: self.heads,
            inner: self.inner,
            epsilon: self.epsilon,
            dropout: self.dropout,
        };
        let embeddings = Sequence::default()
            .then(Embedding::new(self.tables, self.sequence, self.width))
            .then(Norm::new("LayerNorm", rows, self.width, self.epsilon));
        let features = builder.features();
        let (x, below) = builder.within("embeddings", |builder| embeddings.lay(builder, features));
        let distance_bias = self.distance_buckets.map(|buckets| {
            let name = "encoder.relative_attention_bias.weight";
            let table = builder.parameter(name, &[buckets, self.heads], Start::Constant(0.0));
            DistanceBias { table, buckets, furthest: FURTHEST }
        });
        let mut body = Sequence::default();
        if self.dropout > 0.0 {
            body = body.then(Dropout::new(rows * self.width, self.dropout));
        }
        for i in 0..self.layers {
            body = body.then(Transformer::new(format!("encoder.layer.{i}"), shape, distance_bias));
        }
        let body = body.then(FirstToken::new(self.sequence, self.width)).then(Linear::new(
            "pooler.dense",
            samples,
            self.width,
            self.width,
            Function::Tanh,
        ));
        let (x, above) = body.lay(&mut builder, x);
        let loss = CrossEntropy::new("classifier", self.width).lay(&mut builder, x);

        builder.begin_backward();
        if let Some(bias) = distance_bias {
            let words = bias.buckets * self.heads;
            builder.push(Op::ClearGradient { offset: bias.table, words });
        }
        let d = loss(&mut builder, true).and_then(|d| above(&mut builder, d, true));
        d.and_then(|d| below(&mut builder, d, true));
        builder.finish()
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
