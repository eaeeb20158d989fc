use super::*;
use crate::device::cpu::{Cpu, CpuReals};

/// Words cross the ends of slabs on their way there and back.
#[test]
fn words_come_back_from_slabs_as_they_were() {
    let device = Cpu::<f32>::new();
    let count = 2 * ROOM + 5;
    let all = CpuReals::from((0..count).map(|at| at as f32).collect::<Vec<f32>>());
    let mut pool = SlabPool::new(&device, "a/0").unwrap();
    let parcel = pool.fill(&device, count, |writer| {
        writer.copy(&device, &all, 0, ROOM - 3)?;
        writer.copy(&device, &all, ROOM - 3, count - (ROOM - 3))
    });
    let parcel = parcel.unwrap().unwrap();
    assert_eq!((parcel.slabs.len(), slabs_of(count)), (3, 3));
    let (mut opened, mut state) = (OpenedSlabs::default(), device.reals(count).unwrap());
    let mut reader = opened.read(&device, &parcel.slabs, count).unwrap();
    reader.copy(&device, &mut state, 0, 7).unwrap();
    reader.copy(&device, &mut state, 7, count - 7).unwrap();
    assert!(*state == *all && reader.left() == 0);
    let refusal = opened.read(&device, &parcel.slabs, ROOM).unwrap_err().to_string();
    assert!(refusal.contains("3 slabs") && refusal.contains("help: "), "{refusal}");
}

#[test]
fn a_slab_is_used_again_when_nobody_has_it_and_not_before() {
    let device = Cpu::<f32>::new();
    let mut pool = SlabPool::new(&device, "a/0").unwrap();
    let mut fill = |word: f32| {
        pool.fill(&device, 1, |writer| writer.copy(&device, &vec![word].into(), 0, 1)).unwrap().unwrap()
    };
    let (first, second) = (fill(1.0), fill(2.0));
    assert_ne!(first.slabs, second.slabs);
    let mut opened = OpenedSlabs::default();
    let mut read = |parcel: &SharedParcel| {
        let mut word = device.reals(1).unwrap();
        opened.read(&device, &parcel.slabs, 1).unwrap().copy(&device, &mut word, 0, 1).unwrap();
        word[0]
    };
    assert_eq!([read(&first), read(&second)], [1.0, 2.0]);
    let place = first.slabs.clone();
    drop(first);
    let third = fill(3.0);
    assert_eq!(third.slabs, place);
    assert_eq!([read(&third), read(&second)], [3.0, 2.0]);
}

#[test]
fn what_finds_no_slab_is_not_shared_until_one_is_free() {
    let device = Cpu::<f32>::new();
    let mut pool = SlabPool::new(&device, "a/0").unwrap();
    let mut fill = || pool.fill(&device, 1, |writer| writer.copy(&device, &vec![1.0].into(), 0, 1)).unwrap();
    let mut parcels: Vec<SharedParcel> = (0..Cpu::MOST_SLABS).map(|_| fill().unwrap()).collect();
    assert!(fill().is_none());
    parcels.pop();
    assert!(fill().is_some());
}

#[test]
fn what_is_not_the_slab_it_should_be_is_not_read() {
    let device = Cpu::<f32>::new();
    let pool = SlabPool::new(&device, "a/0").unwrap();
    let (slab, mut opened) = (pool.sample(), OpenedSlabs::default());
    let mut told = |handle: SlabHandle| opened.open(&device, &handle).unwrap_err().to_string();
    let of_other = told(SlabHandle { machine: "another".to_owned(), ..slab.clone() });
    assert!(of_other.contains("another machine"), "{of_other}");
    let label = format!("{LABEL_PREFIX}b/0");
    let of_other = told(SlabHandle { label, ..slab.clone() });
    assert!(of_other.contains("no memory with the label `fabswarm slab b/0`"), "{of_other}");
    let long = told(SlabHandle { label: LABEL_PREFIX.repeat(9), ..slab.clone() });
    assert!(long.contains("is no label"), "{long}");
    let input = SlabPlace::File { process: std::process::id(), number: 0 };
    let elsewhere = told(SlabHandle { place: input, ..slab.clone() });
    assert!(elsewhere.contains("is not a slab"), "{elsewhere}");
    let gone = SlabPlace::File { process: std::process::id(), number: i32::MAX };
    assert!(told(SlabHandle { place: gone, ..slab.clone() }).contains("No such file"));
    let of_gpu = told(SlabHandle { place: SlabPlace::Cuda(vec![0; 64]), ..slab.clone() });
    assert!(of_gpu.contains("memory of a GPU"), "{of_gpu}");
    opened.open(&device, &slab).unwrap();
}
