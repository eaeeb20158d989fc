// The Pico's flash chip: its contents, the file that keeps a part of them, and its number.

import fs from 'node:fs';

/** Where the processor sees the flash. */
export const XIP = 0x10000000;
const BYTES = 16 << 20;

const ELF_MAGIC = 0x464c457f;
const ELF_LOAD = 1;
const UF2_MAGIC = 0x0a324655;
const UF2_BLOCK = 512;
const UF2_DATA = 32;

export class FlashChip {
  #file = null;
  #fileAt = 0;

  /** `id` is the number that the maker gave the chip. */
  constructor(id) {
    this.bytes = new Uint8Array(BYTES).fill(0xff);
    this.id = new Uint8Array(8);
    new DataView(this.id.buffer).setBigUint64(0, id);
  }

  /** Writes an ELF or UF2 image, as a flasher would. */
  load(path) {
    const image = fs.readFileSync(path);
    const magic = image.length >= 4 ? image.readUInt32LE(0) : 0;
    if (magic === ELF_MAGIC) this.#loadElf(image);
    else if (magic === UF2_MAGIC) this.#loadUf2(image);
    else throw new Error(`${path} is neither an ELF nor a UF2 image`);
  }

  #loadElf(image) {
    const [headers, size, count] = [image.readUInt32LE(28), image.readUInt16LE(42), image.readUInt16LE(44)];
    for (let at = headers; at < headers + size * count; at += size) {
      const [kind, offset, , address, length] = [0, 4, 8, 12, 16].map((field) => image.readUInt32LE(at + field));
      if (kind === ELF_LOAD && address >= XIP && address + length <= XIP + BYTES) {
        this.bytes.set(image.subarray(offset, offset + length), address - XIP);
      }
    }
  }

  #loadUf2(image) {
    for (let at = 0; at + UF2_BLOCK <= image.length; at += UF2_BLOCK) {
      const [address, length] = [image.readUInt32LE(at + 12), image.readUInt32LE(at + 16)];
      this.bytes.set(image.subarray(at + UF2_DATA, at + UF2_DATA + length), address - XIP);
    }
  }

  /** Takes the flash from `address` on out of a file, and writes every change there. */
  keepIn(path, address) {
    this.#file = fs.openSync(path, 'r+');
    this.#fileAt = address - XIP;
    this.bytes.set(fs.readFileSync(this.#file), this.#fileAt);
  }

  erase(from, length) {
    this.bytes.fill(0xff, from, from + length);
    this.#save(from, length);
  }

  /** Programs `data`: like NOR flash, it only clears bits. */
  program(from, data) {
    data.forEach((byte, index) => (this.bytes[from + index] &= byte));
    this.#save(from, data.length);
  }

  #save(from, length) {
    const at = from - this.#fileAt;
    if (this.#file !== null && at >= 0) fs.writeSync(this.#file, this.bytes, from, length, at);
  }
}
