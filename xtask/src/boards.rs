//! The boards: lints and builds each within its budget, and lists the sizes of images.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use fabswarm_board_file::BoardToml;
use object::{Object, ObjectSection, ObjectSegment};

use crate::step;

/// Lints every board and builds all its images: one that outgrows its budget does not link. Boards have a workspace of their
/// own, and each is built alone, for its own target.
pub(crate) fn check() -> Result<()> {
    let boards = all()?;
    let table = step::read("docs/boards.md")?;
    for (board, file) in boards.iter().filter_map(|(board, file)| Some((board, file.as_ref()?))) {
        let is_listed = board == TEMPLATE || table.contains(&format!("\n| `{board}` | "));
        ensure!(is_listed, "docs/boards.md has no line for boards/{board} in its table");
        check_pins(board, file)?;
    }
    step::run_in("boards", "cargo", &["fmt", "--all", "--check"])?;
    let mut sizes = Vec::new();
    for (board, file) in &boards {
        let folder = format!("boards/{board}");
        // A board that has only another's source is linted there, and builds here.
        if step::root().join(&folder).join("src").is_dir() {
            step::run_in(&folder, "cargo", &["clippy", "--release", "--locked", "--", "-D", "warnings"])?;
        }
        let variants = file.as_ref().map(BoardToml::variants).unwrap_or_default();
        for feature in std::iter::once("").chain(variants) {
            let target_folder = Path::new("../target/images").join(feature);
            let build = ["build", "--release", "--locked", "--features", feature, "--target-dir"];
            step::run_in(&folder, "cargo", &[&build[..], &[&target_folder.to_string_lossy()]].concat())?;
            if let Some(file) = file {
                sizes.push(ImageSize::measure(board, file, feature)?);
            }
        }
    }
    if let Some(size) = sizes.iter().find(|size| size.name == TEMPLATE) {
        check_stack(size)?;
    }
    check_copy()?;
    check_faults()?;
    println!("\n{:<24} {:>8} {:>8} {:>10} {:>8}", "image", "flash", "budget", "RAM", "budget");
    for ImageSize { name, flash, flash_budget, ram, ram_budget } in &sizes {
        println!("{name:<24} {flash:>8} {flash_budget:>8} {ram:>10} {ram_budget:>8}");
    }
    println!("(bytes; RAM without the stack)\n");
    Ok(())
}

/// The board that is there to be copied.
const TEMPLATE: &str = "template";

/// Fails unless the linker refuses an image that leaves too little RAM for the stack: the board to copy, with ballast in RAM.
fn check_stack(size: &ImageSize) -> Result<()> {
    let Some(file) = read(TEMPLATE)? else { bail!("boards/{TEMPLATE} has no board.toml") };
    let stack_kib = file.ram.stack_kib;
    let folder = step::root().join("boards").join(TEMPLATE);
    let script = step::root().join("boards/target/ballast.x");
    // A little more than there is besides the stack.
    let ballast = size.ram_budget - size.ram - 1024 * stack_kib + 512;
    let section =
        format!("SECTIONS {{ .ballast (NOLOAD) : {{ . += {ballast}; }} > RAM }} INSERT AFTER .bss;\n");
    fs::write(&script, section).with_context(|| format!("cannot write {}", script.display()))?;
    let flag = format!("link-arg=-T{}", script.display());
    let arguments =
        ["rustc", "--release", "--locked", "--target-dir", "../target/ballast", "--", "-C", &flag];
    println!("    cargo {} (in boards/{TEMPLATE}), which must fail", arguments.join(" "));
    let output = step::command("cargo", &arguments).current_dir(&folder).output();
    let output = output.context("cannot start cargo")?;
    let messages = String::from_utf8_lossy(&output.stderr);
    let expected = "will not fit in region 'RAM'";
    if output.status.success() || !messages.contains(expected) {
        bail!("with {ballast} bytes more in RAM, the linker must say `{expected}`, and not\n{messages}");
    }
    Ok(())
}

/// Builds a copy of the board to copy in a folder of its own outside of the source tree, as docs/boards.md describes.
fn check_copy() -> Result<()> {
    const NAME: &str = "own-board";
    let boards = step::root().join("boards");
    let own = std::env::temp_dir().join(format!("fabswarm-own-boards-{}", std::process::id()));
    let copy = |from: &str, to: &str, edit: &dyn Fn(String) -> String| {
        let (text, to) = (step::read(from)?, own.join(to));
        fs::create_dir_all(to.parent().unwrap_or(&own))?;
        fs::write(&to, edit(text)).with_context(|| format!("cannot write {}", to.display()))
    };
    let absolute = |text: String| {
        let [outer, inner] = [step::root(), &boards].map(|path| format!("path = \"{}/", path.display()));
        let text = text.replace("path = \"../", &outer);
        ["parts", "chip-"]
            .iter()
            .fold(text, |text, name| text.replace(&format!("path = \"{name}"), &format!("{inner}{name}")))
    };
    copy("boards/Cargo.toml", "Cargo.toml", &absolute)?;
    copy("boards/Cargo.lock", "Cargo.lock", &|text| text)?;
    for file in step::output_of("git", &["ls-files", "boards/template"])?.lines() {
        let to = file.replace("boards/template", NAME);
        copy(file, &to, &|text| text.replace("\"template\"", &format!("\"{NAME}\"")))?;
    }
    // Cargo takes what it lacks from the lock file, and leaves the other boards out of it.
    let folder = boards.join("target");
    let build_folder = format!("build.build-dir={:?}", folder.to_string_lossy());
    let images = folder.join("images");
    let target = ["--target-dir", &images.to_string_lossy()];
    let build = [&["build", "--release", "--offline", "--config", &build_folder][..], &target].concat();
    step::run_in(&own.join(NAME).to_string_lossy(), "cargo", &build)?;
    fs::remove_dir_all(&own).with_context(|| format!("cannot remove {}", own.display()))
}

/// Fails unless the handler of hard faults finds the place of a bad instruction, and survives an overflowing stack: in QEMU.
fn check_faults() -> Result<()> {
    const FOLDER: &str = "boards/mps2-an386";
    let build = ["build", "--release", "--locked", "--features", "faults", "--bin", "faults"];
    step::run_in(FOLDER, "cargo", &[&build[..], &["--target-dir", "../target/images/faults"]].concat())?;
    let image = "../target/images/faults/thumbv7em-none-eabihf/release/faults";
    let run = |fault: &str| {
        let semihosting = format!("enable=on,target=native,arg={fault}");
        let arguments =
            ["-M", "mps2-an386", "-nographic", "-semihosting-config", &semihosting, "-kernel", image];
        let mut emulator = step::command("qemu-system-arm", &arguments);
        let output = emulator.current_dir(step::root().join(FOLDER)).output();
        let output = output.context("cannot start qemu-system-arm")?;
        Ok::<_, anyhow::Error>(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let said = run("instruction")?;
    // The address of the function, then that of the instruction.
    let places: Vec<u32> = said
        .split([' ', ',', '\n'])
        .filter_map(|word| u32::from_str_radix(word.strip_prefix("0x")?, 16).ok())
        .collect();
    match places[..] {
        [function, fault, ..]
            if said.contains("hard fault at") && (function..function + 16).contains(&fault) => {}
        _ => bail!("a bad instruction must be reported with its place, and not as\n{said}"),
    }
    let said = run("overflow")?;
    if !said.contains("stack overflow, CFSR=0x") {
        bail!("an overflowing stack must be reported, and not as\n{said}");
    }
    Ok(())
}

/// Fails unless `[pins]` of a board names the pins of its program.
fn check_pins(board: &str, file: &BoardToml) -> Result<()> {
    let listed: BTreeSet<String> = file.pins.keys().cloned().collect();
    let mut used = BTreeSet::new();
    for path in step::output_of("git", &["ls-files", &format!("boards/{board}/src/*.rs")])?.lines() {
        let text = step::read(path)?;
        let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        used.extend(words.filter(|word| is_pin(word)).map(str::to_owned));
    }
    if listed != used {
        bail!("[pins] of boards/{board}/board.toml lists {listed:?}, and its program uses {used:?}");
    }
    Ok(())
}

/// Whether a HAL calls a pin so: `PIN_25`, `P0_13` or `PB5`.
fn is_pin(word: &str) -> bool {
    let port = word.strip_prefix('P');
    let number = port.and_then(|port| {
        let named = ["IN_", "0_", "1_"].into_iter().find_map(|start| port.strip_prefix(start));
        named.or_else(|| port.strip_prefix(|letter: char| ('A'..='H').contains(&letter)))
    });
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()))
}

/// The folders under `boards/` that are boards, sorted, with what [`read`] gives.
fn all() -> Result<Vec<(String, Option<BoardToml>)>> {
    let folder = step::root().join("boards");
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let path = entry?.path();
        // A board has its `board.toml`, or is a program of the host.
        if path.join("board.toml").is_file() || path.join("src/main.rs").is_file() {
            names.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    names.into_iter().map(|name| Ok((name.clone(), read(&name)?))).collect()
}

/// The boards whose images are part of a release: all but the programs of the host, and the one to copy.
pub(crate) fn released() -> Result<Vec<String>> {
    let is_released = |(board, file): (String, Option<BoardToml>)| file.is_some().then_some(board);
    Ok(all()?.into_iter().filter_map(is_released).filter(|board| board != TEMPLATE).collect())
}

/// Fails unless a folder has the ELF file of a board, and a UF2 file where its boot loader takes one.
pub(crate) fn check_image_files(board: &str, folder: &Path) -> Result<()> {
    let bytes_of = |suffix: &str| {
        let path = folder.join(format!("{board}.{suffix}"));
        fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    object::File::parse(&*bytes_of("elf")?).with_context(|| format!("{board}.elf"))?;
    let takes_uf2 = read(board)?.is_some_and(|file| file.uf2.is_some());
    if takes_uf2 && !bytes_of("uf2")?.chunks(512).all(|block| block.starts_with(b"UF2\n")) {
        bail!("{board}.uf2 is not in the format UF2");
    }
    Ok(())
}

/// The compiler targets of all boards.
pub(crate) fn targets() -> Result<Vec<String>> {
    Ok(all()?.into_iter().filter_map(|(_, file)| Some(file?.target)).collect())
}

/// Reads the `board.toml` of a board; `None` for a program of the host, which has none.
fn read(board: &str) -> Result<Option<BoardToml>> {
    let path = step::root().join("boards").join(board).join("board.toml");
    if !path.is_file() {
        return Ok(None);
    }
    let file = BoardToml::read(&path).map_err(|reason| anyhow!("boards/{board}/board.toml: {reason}"))?;
    Ok(Some(file))
}

/// The memory of an image, in bytes.
struct ImageSize {
    name: String,
    flash: u64,
    flash_budget: u64,
    ram: u64,
    ram_budget: u64,
}

impl ImageSize {
    /// Measures the image that `board` has with `feature`.
    fn measure(board: &str, file: &BoardToml, feature: &str) -> Result<Self> {
        let parts = ["target/images", feature, &file.target, "release", board];
        let image = step::root().join("boards").join(parts.iter().collect::<PathBuf>());
        let bytes = fs::read(&image).with_context(|| format!("cannot read {}", image.display()))?;
        let (mut flash, mut ram) = (0, 0);
        let ram_at = file.ram.origin;
        // No microcontroller has more.
        let ram_end = ram_at.saturating_add(1 << 20);
        let elf = object::File::parse(&*bytes).with_context(|| image.display().to_string())?;
        let begins_at = file.flash.origin;
        let is_in = |segment: object::Segment| {
            (segment.address()..segment.address() + segment.size()).contains(&begins_at)
        };
        if !elf.segments().any(is_in) {
            bail!(
                "{} has nothing at {begins_at:#x}, where its flash begins: do its linker flags reach the linker?",
                image.display()
            );
        }
        for segment in elf.segments() {
            // Initialised data are in flash and in RAM.
            flash += segment.file_range().1;
            ram += if (ram_at..ram_end).contains(&segment.address()) { segment.size() } else { 0 };
        }
        // Some linker scripts give all that is left to the stack, as a section.
        ram -= elf.section_by_name(".stack").map_or(0, |stack| stack.size());
        let name = if feature.is_empty() { board.to_owned() } else { format!("{board} ({feature})") };
        let (flash_budget, ram_budget) = (file.flash.budget([feature]), file.ram.budget([feature]));
        // The linker has checked it, except where the HAL brings the linker script.
        let stack = 1024 * file.ram.stack_kib;
        if flash > flash_budget || ram + stack > ram_budget {
            bail!(
                "{name} takes {flash} of {flash_budget} bytes of flash, and {ram} + {stack} of {ram_budget} bytes of RAM"
            );
        }
        Ok(Self { name, flash, flash_budget, ram, ram_budget })
    }
}
