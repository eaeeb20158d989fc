//! BERT and MPNet, described by the `config.json` that comes with their weights.

use crate::layers::embedding::Tables;
use crate::layers::transformer::TransformerShape;
use crate::layers::{CrossEntropy, Dropout, Embedding, FirstToken, Layer, Linear, Norm, Transformer};
use crate::parameters::Start;
use crate::program::op::DistanceBias;
use crate::program::{Function, Input, ModelProgram, ProgramBuilder};

/// Buckets and furthest distance of MPNet's attention bias; its published configurations give the bucket count only.
const FURTHEST: usize = 128;

/// An encoder with a classifier on its first token.
#[derive(Clone, Debug, PartialEq)]
pub struct BertEncoder {
    pub tables: Tables,
    pub width: usize,
    pub heads: usize,
    pub inner: usize,
    pub layers: usize,
    pub epsilon: f64,
    pub dropout: f64,
    /// Buckets of MPNet's shared distance bias; BERT has none.
    pub distance_buckets: Option<usize>,
    pub sequence: usize,
    pub classes: usize,
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
        let mut embedding = Embedding::new(self.tables, self.sequence, self.width);
        let mut norm = Norm::new("LayerNorm", rows, self.width, self.epsilon);
        let mut dropout = (self.dropout > 0.0).then(|| Dropout::new(rows * self.width, self.dropout));
        let features = builder.features();
        let mut x = builder.within("embeddings", |builder| {
            let x = embedding.forward(builder, features);
            norm.forward(builder, x)
        });
        if let Some(dropout) = &mut dropout {
            x = dropout.forward(&mut builder, x);
        }
        let distance_bias = self.distance_buckets.map(|buckets| DistanceBias {
            table: builder.parameter(
                "encoder.relative_attention_bias.weight",
                &[buckets, self.heads],
                Start::Constant(0.0),
            ),
            buckets,
            furthest: FURTHEST,
        });
        let mut layers: Vec<Transformer> = (0..self.layers)
            .map(|i| Transformer::new(format!("encoder.layer.{i}"), shape, distance_bias))
            .collect();
        for layer in &mut layers {
            x = layer.forward(&mut builder, x);
        }
        let mut first = FirstToken::new(self.sequence, self.width);
        x = first.forward(&mut builder, x);
        let mut pooler = Linear::new("pooler.dense", samples, self.width, self.width, Function::Tanh);
        x = pooler.forward(&mut builder, x);
        let mut loss = CrossEntropy::new("classifier", self.width);
        loss.forward(&mut builder, x);

        builder.begin_backward();
        if let Some(bias) = distance_bias {
            builder.push(crate::program::Op::ClearGradient {
                offset: bias.table,
                words: bias.buckets * self.heads,
            });
        }
        let mut d = loss.backward(&mut builder, true);
        let mut back = |layer: &dyn Layer| d = d.and_then(|d| layer.backward(&mut builder, d, true));
        back(&pooler);
        back(&first);
        layers.iter().rev().for_each(|layer| back(layer));
        if let Some(dropout) = &dropout {
            back(dropout);
        }
        back(&norm);
        back(&embedding);
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
