// The firmware's log: a debugger would read it out of the Pico's RAM (SEGGER's RTT), and so does this.

import fs from 'node:fs';

const RAM = 0x20000000;
const ID = Buffer.from('SEGGER RTT\0');
/** Where the first buffer to the host is described, counted from the id. */
const FIRST_BUFFER = 24;
const FIELDS = { data: 4, size: 8, written: 12, read: 16 };

export class RttLog {
  #file;
  #at = null;

  constructor(path) {
    this.#file = fs.openSync(path, 'w');
  }

  /** The RAM is that of a new boot. */
  startOver() {
    this.#at = null;
  }

  /** Appends what the firmware has logged since the last call. */
  drain(ram) {
    if (this.#at === null) {
      const found = Buffer.from(ram.buffer).indexOf(ID);
      if (found < 0) return;
      this.#at = found + FIRST_BUFFER;
    }
    const memory = new DataView(ram.buffer);
    const field = (name) => memory.getUint32(this.#at + FIELDS[name], true);
    const [data, size, written, read] = ['data', 'size', 'written', 'read'].map(field);
    if (read === written || data < RAM) return;
    const from = data - RAM;
    const pieces = read < written ? [[read, written]] : [[read, size], [0, written]];
    for (const [start, end] of pieces) fs.writeSync(this.#file, ram, from + start, end - start);
    memory.setUint32(this.#at + FIELDS.read, written, true);
  }
}
