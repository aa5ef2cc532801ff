//! Whatever is wrong with a checkpoint or an argument gives an error that names it, and no panic.

mod common;

use std::fs;
use std::path::Path;

use common::fixture;
use qwengpu_model::{
    Cache, Config, ConfigError, DenseEngine, Engine, Error, LayerCache, LoadError, MatrixError, Precision,
    SparseEngine, SparseMatrix, SparseRows, SparseWeights,
};
use safetensors::{Dtype, SafeTensors, serialize, tensor::TensorView};
use tempfile::TempDir;

/// A tensor on its way into a damaged copy of the fixture.
#[derive(Clone)]
struct Tensor {
    name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

fn copy_fixture() -> TempDir {
    let dir = TempDir::new().expect("a temporary directory");
    for name in ["config.json", "generation_config.json", "model.safetensors"] {
        fs::copy(fixture().join(name), dir.path().join(name)).expect("a copy");
    }
    dir
}

fn tensors() -> Vec<Tensor> {
    let bytes = fs::read(fixture().join("model.safetensors")).expect("the fixture");
    let file = SafeTensors::deserialize(&bytes).expect("a valid fixture");
    let own = |(name, view): (&str, TensorView<'_>)| Tensor {
        name: name.to_owned(),
        dtype: view.dtype(),
        shape: view.shape().to_vec(),
        bytes: view.data().to_vec(),
    };
    file.iter().map(own).collect()
}

fn write(path: &Path, tensors: &[Tensor]) {
    let views = tensors.iter().map(|t| {
        let view = TensorView::new(t.dtype, t.shape.clone(), &t.bytes).expect("a valid tensor");
        (t.name.clone(), view)
    });
    fs::write(path, serialize(views, None).expect("a file")).expect("written");
}

/// Both engines' error after an edit of the tensors.
fn refused(edit: impl FnOnce(&mut Vec<Tensor>)) -> LoadError {
    let dir = copy_fixture();
    let mut all = tensors();
    edit(&mut all);
    write(&dir.path().join("model.safetensors"), &all);
    load_error(dir.path())
}

fn load_error(dir: &Path) -> LoadError {
    let sparse = SparseEngine::from_dir(dir, Precision::F32).expect_err("the sparse engine must refuse");
    let dense = DenseEngine::from_dir(dir, Precision::F32).expect_err("the dense engine must refuse");
    assert_eq!(format!("{sparse:?}"), format!("{dense:?}"));
    match sparse {
        Error::Load(error) => error,
        other => unreachable!("not an error of loading: {other:?}"),
    }
}

const GATE: &str = "model.layers.1.mlp.gate_proj.weight";

#[test]
fn missing_tensor() {
    let error = refused(|all| all.retain(|t| t.name != GATE));
    assert_eq!(error.to_string(), format!("tensor {GATE} is missing, expected with shape [48, 16]"));
}

#[test]
fn wrong_shape() {
    let error = refused(|all| {
        let tensor = all.iter_mut().find(|t| t.name == GATE).expect("the tensor");
        tensor.shape = vec![16, 48];
    });
    assert_eq!(error.to_string(), format!("tensor {GATE} has shape [16, 48], expected [48, 16]"));
}

#[test]
fn wrong_dtype() {
    let error = refused(|all| {
        let tensor = all.iter_mut().find(|t| t.name == GATE).expect("the tensor");
        tensor.dtype = Dtype::I32;
    });
    assert_eq!(error.to_string(), format!("tensor {GATE} has dtype I32, expected F32 or BF16"));
}

#[test]
fn unexpected_tensor() {
    let extra = |name: &str| Tensor { name: name.to_owned(), dtype: Dtype::F32, shape: vec![1], bytes: vec![0; 4] };
    let error = refused(|all| all.push(extra("model.layers.9.mlp.gate_proj.weight")));
    assert!(matches!(error, LoadError::Unexpected { name } if name == "model.layers.9.mlp.gate_proj.weight"));

    let dir = copy_fixture();
    let mut all = tensors();
    all.extend(["model.visual.patch_embed.weight", "mtp.norm.weight"].map(extra));
    write(&dir.path().join("model.safetensors"), &all);
    SparseEngine::from_dir(dir.path(), Precision::F32).expect("vision and mtp tensors are skipped");
}

#[test]
fn truncated_file() {
    let whole = fs::read(fixture().join("model.safetensors")).expect("the fixture");
    for len in [0, 7, 8, 100, 4000, whole.len() / 2, whole.len() - 1] {
        let dir = copy_fixture();
        fs::write(dir.path().join("model.safetensors"), &whole[..len]).expect("written");
        match load_error(dir.path()) {
            LoadError::FileSize { got, .. } => assert_eq!(got, len),
            LoadError::Header { .. } => assert!(len < 8000, "{len} bytes should have a readable header"),
            other => unreachable!("{len} bytes: {other:?}"),
        }
    }
}

#[test]
fn no_weights_and_no_config() {
    let dir = copy_fixture();
    fs::remove_file(dir.path().join("model.safetensors")).expect("removed");
    assert!(matches!(load_error(dir.path()), LoadError::NoWeights { .. }));
    fs::remove_file(dir.path().join("config.json")).expect("removed");
    assert!(matches!(load_error(dir.path()), LoadError::Io { .. }));
}

#[test]
fn shards() {
    let dir = copy_fixture();
    let all = tensors();
    let (first, second) = all.split_at(all.len() / 2);
    fs::remove_file(dir.path().join("model.safetensors")).expect("removed");
    write(&dir.path().join("a.safetensors"), first);
    write(&dir.path().join("b.safetensors"), second);
    let index = |place: &dyn Fn(usize) -> &'static str| {
        let map: serde_json::Map<String, serde_json::Value> =
            all.iter().enumerate().map(|(i, t)| (t.name.clone(), place(i).into())).collect();
        let text = serde_json::json!({ "weight_map": map }).to_string();
        fs::write(dir.path().join("model.safetensors.index.json"), text).expect("written");
    };
    let half = all.len() / 2;
    index(&|i| if i < half { "a.safetensors" } else { "b.safetensors" });
    let mut engine = SparseEngine::from_dir(dir.path(), Precision::F32).expect("two shards");
    let mut whole = SparseEngine::from_dir(&fixture(), Precision::F32).expect("one file");
    assert_eq!(engine.forward(&[1, 2]).expect("logits"), whole.forward(&[1, 2]).expect("logits"));

    index(&|i| if i < half + 1 { "a.safetensors" } else { "b.safetensors" });
    assert!(matches!(load_error(dir.path()), LoadError::NotInShard { name, .. } if name == all[half].name));
    index(&|i| if i < half { "../a.safetensors" } else { "b.safetensors" });
    assert!(matches!(load_error(dir.path()), LoadError::ShardName { .. }));
    index(&|i| if i < half { "a.safetensors" } else { "b.safetensors" });
    write(&dir.path().join("b.safetensors"), &all);
    assert!(matches!(load_error(dir.path()), LoadError::Duplicate { .. }));
    fs::write(dir.path().join("model.safetensors.index.json"), "{}").expect("written");
    assert!(matches!(load_error(dir.path()), LoadError::Index { .. }));
}

#[test]
fn values_that_are_not_finite() {
    let dir = copy_fixture();
    let mut all = tensors();
    let tensor = all.iter_mut().find(|t| t.name == GATE).expect("the tensor");
    tensor.bytes[68..72].copy_from_slice(&f32::NAN.to_le_bytes());
    write(&dir.path().join("model.safetensors"), &all);
    let error = SparseEngine::from_dir(dir.path(), Precision::F32).expect_err("must be refused");
    match error {
        Error::Matrix { source: MatrixError::NotFinite { row, col, .. }, .. } => assert_eq!((row, col), (1, 1)),
        other => unreachable!("{other:?}"),
    }
}

fn config_with(edit: impl FnOnce(&mut serde_json::Map<String, serde_json::Value>)) -> Result<Config, ConfigError> {
    let text = fs::read_to_string(fixture().join("config.json")).expect("the fixture");
    let mut json: serde_json::Value = serde_json::from_str(&text).expect("json");
    edit(json.as_object_mut().expect("an object"));
    Config::from_json(&json.to_string())
}

#[test]
fn configurations() {
    let plain = config_with(|_| ()).expect("the fixture's");
    assert_eq!(plain, Config::from_dir(&fixture()).expect("the fixture's"));
    let message = |edit: (&str, serde_json::Value)| {
        let result = config_with(|json| {
            json.insert(edit.0.to_owned(), edit.1);
        });
        result.expect_err("must be refused").to_string()
    };
    let refusals = [
        ("model_type", "llama".into(), "model_type is \"llama\""),
        ("hidden_act", "gelu".into(), "hidden_act = gelu is not supported, expected silu"),
        ("attention_bias", true.into(), "attention_bias = true"),
        ("attn_output_gate", false.into(), "attn_output_gate = false"),
        ("hidden_size", 0.into(), "hidden_size = 0 is invalid"),
        ("linear_num_value_heads", 3.into(), "expected a multiple of linear_num_key_heads = 2"),
        ("num_hidden_layers", 5.into(), "layer_types = 4 entries is invalid"),
        ("layer_types", serde_json::json!(["linear_attention", "x", "x", "x"]), "layer_types = x is not supported"),
        ("rms_norm_eps", (-1.0).into(), "rms_norm_eps = -1 is invalid"),
        ("rope_parameters", serde_json::json!({"rope_type": "yarn"}), "rope_parameters.rope_type = yarn"),
        ("rope_parameters", serde_json::json!({"partial_rotary_factor": 0.2}), "even number of rotated dimensions"),
        ("vocab_size", "many".into(), "not a valid configuration"),
    ];
    for (field, value, expected) in refusals {
        let message = message((field, value));
        assert!(message.contains(expected), "{field}: {message}");
    }
    assert!(Config::from_json("{").is_err());

    // Without layer_types the interval counts, and a multimodal configuration nests the text model's.
    let by_interval = config_with(|json| {
        json.remove("layer_types");
        json.insert("full_attention_interval".to_owned(), 4.into());
    });
    assert_eq!(by_interval.expect("an interval"), plain);
    let text = fs::read_to_string(fixture().join("config.json")).expect("the fixture");
    let nested = format!("{{\"model_type\": \"qwen3_5\", \"text_config\": {text}}}");
    assert_eq!(Config::from_json(&nested).expect("nested"), plain);
}

#[test]
fn arguments_are_refused_before_anything_changes() {
    let mut dense = DenseEngine::from_dir(&fixture(), Precision::F32).expect("a dense engine");
    let mut sparse = SparseEngine::from_dir(&fixture(), Precision::F32).expect("a sparse engine");
    for engine in [&mut dense as &mut dyn Engine, &mut sparse] {
        engine.forward(&[1, 2, 3]).expect("logits");
        let before = engine.save();
        assert!(matches!(engine.forward(&[1, 40]), Err(Error::TokenOutOfRange { token: 40, index: 1, .. })));
        assert!(matches!(engine.argmax_all(&[40]), Err(Error::TokenOutOfRange { .. })));
        assert!(matches!(engine.forward(&[]), Err(Error::NoTokens)));
        assert!(matches!(engine.argmax(&[]), Err(Error::NoTokens)));
        assert!(engine.argmax_all(&[]).expect("nothing").is_empty());
        assert!(matches!(engine.recurrent_state(3, 0), Err(Error::NoRecurrentState { layer: 3, head: 0 })));
        assert!(matches!(engine.recurrent_state(0, 4), Err(Error::NoRecurrentState { layer: 0, head: 4 })));
        let mut wrong = before.clone();
        wrong.position = 2;
        assert!(matches!(engine.restore(&wrong), Err(Error::CacheShape { layer: 3, part: "keys", .. })));
        if let LayerCache::Linear { recurrent, .. } = &mut wrong.layers[0] {
            *recurrent = SparseRows::zeros(recurrent.len(), 1);
        }
        let width = engine.restore(&wrong);
        assert!(matches!(width, Err(Error::CacheWidth { layer: 0, part: "recurrent", got: 1, .. })), "{width:?}");
        wrong.layers.pop();
        assert!(matches!(engine.restore(&wrong), Err(Error::CacheLayers { expected: 4, got: 3 })));
        assert_eq!(engine.save(), before);
        engine.reset();
        assert_eq!(engine.save(), Cache::empty(engine.config()));
    }
}

#[test]
fn matrices() {
    let build = |entries: &[(u32, u32, f32)]| SparseMatrix::from_triplets(2, 3, entries.iter().copied());
    let matrix = build(&[(1, 2, 5.0), (0, 1, 0.0), (1, 0, -1.0)]).expect("entries");
    assert_eq!(matrix.num_nonzeros(), 2);
    assert_eq!(matrix.to_dense(), [0.0, 0.0, 0.0, -1.0, 0.0, 5.0]);
    assert_eq!(matrix.transpose().to_dense(), [0.0, -1.0, 0.0, 0.0, 0.0, 5.0]);
    assert_eq!(SparseMatrix::from_dense(2, 3, &matrix.to_dense()), Ok(matrix));
    assert_eq!(build(&[(2, 0, 1.0)]), Err(MatrixError::OutOfRange { row: 2, col: 0, rows: 2, cols: 3 }));
    assert_eq!(build(&[(1, 0, 1.0), (1, 0, 2.0)]), Err(MatrixError::Duplicate { row: 1, col: 0 }));
    assert!(matches!(build(&[(0, 0, f32::INFINITY)]), Err(MatrixError::NotFinite { row: 0, col: 0, .. })));
    assert!(matches!(SparseMatrix::from_dense(2, 3, &[0.0]), Err(MatrixError::Length { got: 1, .. })));
}

#[test]
fn weights_of_the_wrong_shape() {
    let config = Config::from_dir(&fixture()).expect("the fixture's");
    let mut weights = SparseWeights::zeros(config).expect("zeros");
    weights.validate().expect("zeros fit");
    weights.layers[2].up_proj = SparseMatrix::zeros(47, 16);
    let error = weights.validate().expect_err("must be refused").to_string();
    assert_eq!(error, "tensor model.layers.2.mlp.up_proj.weight has shape [47, 16], expected [48, 16]");
    weights.layers.swap(2, 3);
    assert!(matches!(weights.validate(), Err(Error::MixerKind { layer: 2, .. })));
}
