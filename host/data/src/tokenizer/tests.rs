//! `golden.json` was made by the Python package `tokenizers` 0.23.3 from `small_tokenizer.json`, a cut of the vocabulary of
//! `bert-base-uncased`.

use proptest::prelude::*;

use super::*;
use crate::{Cache, model_folder};

#[derive(Deserialize)]
struct Example {
    text: String,
    ids: Vec<u32>,
}

fn small() -> Tokenizer {
    let (pieces, is_lowercasing) = parse_description(include_bytes!("small_tokenizer.json")).unwrap();
    Tokenizer::new(pieces, is_lowercasing, "small_tokenizer.json".into()).unwrap()
}

#[test]
fn ids_are_those_of_the_reference() {
    let tokenizer = small();
    let examples: Vec<Example> = serde_json::from_slice(include_bytes!("golden.json")).unwrap();
    for Example { text, ids } in examples {
        assert_eq!(tokenizer.encode(&text, usize::MAX), ids, "{text:?}");
        let cut = tokenizer.encode(&text, 5);
        assert!(cut.len() <= 5);
        assert_eq!(cut[..cut.len() - 1], ids[..cut.len() - 1], "{text:?}");
        assert_eq!(cut.last(), ids.last());
    }
}

#[test]
fn sentences_are_padded_to_one_length() {
    let tokenizer = small();
    let tokens = tokenizer.encode_all(&["hello".to_owned(), "hello world hello world hello".to_owned()], 5);
    assert_eq!(tokens.used, [3, 5]);
    let sentences: Vec<&[u32]> = tokens.ids.chunks_exact(5).collect();
    assert_eq!(sentences[0][3..], [tokenizer.special.pad; 2]);
    assert_eq!(sentences[1][4], sentences[0][2]);
}

#[test]
fn a_vocabulary_beyond_the_embeddings_is_refused() {
    let tokenizer = small();
    let size = tokenizer.largest_id as usize + 1;
    assert!(tokenizer.check_vocabulary(size).is_ok());
    let message = tokenizer.check_vocabulary(size - 1).unwrap_err().to_string();
    assert!(message.contains("small_tokenizer.json") && message.contains("does not match"), "{message}");
}

#[test]
fn other_tokenizers_are_refused_by_name() {
    let parse = |text: &str| parse_description(text.as_bytes()).map(|_| ()).unwrap_err();
    assert!(parse(r#"{"model":{"type":"BPE","vocab":{}}}"#).contains("BPE"));
    assert!(parse(r#"{"model":{"type":"WordPiece","vocab":{}}}"#).contains("no normalizer"));
    assert!(
        parse(r#"{"model":{"vocab":{}},"normalizer":{"type":"NFC"}}"#).contains("NFC"),
        "the normalizer is named"
    );
    assert!(
        parse(r#"{"model":{"vocab":[1]},"normalizer":{"type":"BertNormalizer"}}"#).contains("vocabulary")
    );
    assert!(parse("{").contains("EOF"));
    let empty = Tokenizer::new(HashMap::new(), true, PathBuf::new()).unwrap_err();
    assert!(empty.contains("[CLS]"), "{empty}");
}

#[test]
fn text_stays_as_it_is_where_the_model_is_cased() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    let ids = |lowercase: bool| {
        let vocabulary = r###"{"[PAD]":0,"[UNK]":1,"[CLS]":2,"[SEP]":3,"A":4,"a":5,"##b":6}"###;
        let normalizer = format!(r#"{{"type":"BertNormalizer","lowercase":{lowercase}}}"#);
        std::fs::write(&path, format!(r#"{{"model":{{"vocab":{vocabulary}}},"normalizer":{normalizer}}}"#))
            .unwrap();
        Tokenizer::from_folder(folder.path()).unwrap().encode("Ab", 10)
    };
    assert_eq!(ids(true), [2, 5, 6, 3]);
    assert_eq!(ids(false), [2, 4, 6, 3]);
    std::fs::remove_file(&path).unwrap();
    let message = Tokenizer::from_folder(folder.path()).unwrap_err().to_string();
    assert!(message.contains("tokenizer.json"), "{message}");
}

#[test]
#[ignore = "needs `fabswarm data fetch minilm` and `mpnet-base`"]
fn ids_of_whole_vocabularies_are_the_known_ones() {
    let cache = Cache::from_environment();
    for (model, embeddings, ids) in [
        ("minilm", 30_522, [101, 7592, 2088, 999, 102]),
        // The same pieces, four special tokens later.
        ("mpnet-base", 30_527, [0, 7596, 2092, 1003, 2]),
    ] {
        let folder = model_folder(&cache, model).unwrap();
        let tokenizer = Tokenizer::from_folder(&folder).unwrap();
        assert_eq!(tokenizer.encode("Hello world!", 128), ids);
        tokenizer.check_vocabulary(embeddings).unwrap();
    }
}

proptest! {
    #[test]
    fn the_short_way_of_ascii_is_the_long_one(text in "[\\x00-\\x7f]{0,80}") {
        let tokenizer = small();
        // An ideograph takes the long way and is set apart by spaces.
        prop_assert_eq!(tokenizer.clean(&format!("{text}中")), format!("{} 中 ", tokenizer.clean(&text)));
    }

    #[test]
    fn any_text_gives_a_sentence_that_fits(text in ".{0,80}", length in 2_usize..40) {
        let tokenizer = small();
        let ids = tokenizer.encode(&text, length);
        prop_assert!((2..=length).contains(&ids.len()));
        prop_assert_eq!(ids[0], tokenizer.special.begin);
        prop_assert_eq!(ids[ids.len() - 1], tokenizer.special.end);
    }
}
