// A Raspberry Pi Pico in rp2040js: runs an image with a unix socket as its serial line or USB port.
//
//   node main.mjs --image FILE.elf|FILE.uf2 --socket SOCKET --port uart|usb
//                 [--flash FILE --flash-at ADDRESS] [--log FILE] [--chip HEX] [--battery]
//
// FILE holds the flash from ADDRESS on, so that what the firmware stores outlives the process. Without it the flash is
// forgotten in the end. `--log` gets the bytes of the firmware's log (RTT), `--chip` is the number of the flash chip. With
// `--battery` the Pico runs on when the socket is closed, as with its cable unplugged, until it is open again; without it the
// process ends.

import net from 'node:net';
import { parseArgs } from 'node:util';
import { FlashChip } from './flash.mjs';
import { Pico } from './pico.mjs';
import { RttLog } from './rtt.mjs';

const { values } = parseArgs({
  options: {
    image: { type: 'string' },
    socket: { type: 'string' },
    port: { type: 'string', default: 'uart' },
    flash: { type: 'string' },
    'flash-at': { type: 'string' },
    log: { type: 'string' },
    chip: { type: 'string', default: '0' },
    battery: { type: 'boolean', default: false },
  },
});

/** Bytes from the host that the board has not taken yet. */
class Inbox {
  #chunks = [];
  #offset = 0;

  get isEmpty() {
    return this.#chunks.length === 0;
  }

  push(chunk) {
    this.#chunks.push(chunk);
  }

  clear() {
    this.#chunks = [];
    this.#offset = 0;
  }

  pull() {
    const byte = this.#chunks[0][this.#offset++];
    if (this.#offset === this.#chunks[0].length) {
      this.#chunks.shift();
      this.#offset = 0;
    }
    return byte;
  }
}

const flash = new FlashChip(BigInt(`0x${values.chip}`));
flash.load(values.image);
if (values.flash) flash.keepIn(values.flash, Number(values['flash-at']));

const inbox = new Inbox();
const log = values.log ? new RttLog(values.log) : null;
/** Between two tries to find a host. */
const RETRY_MS = 50;

let socket = null;
let isPlugged = true;
let pico = boot();
let wake = () => {};
connect();

function connect() {
  socket = net.connect(values.socket);
  socket.on('connect', () => {
    if (isPlugged) return;
    isPlugged = true;
    pico.plug();
    wake();
  });
  socket.on('data', (chunk) => {
    inbox.push(chunk);
    wake();
  });
  // The host has closed its end, or is gone; `close` follows.
  socket.on('error', () => {});
  socket.on('close', () => {
    if (!values.battery) process.exit(0);
    if (isPlugged) {
      isPlugged = false;
      inbox.clear();
      pico.unplug();
      wake();
    }
    setTimeout(connect, RETRY_MS);
  });
}

/** Starts the chip, with what a reset leaves as it is. */
function boot(before) {
  log?.startOver();
  const pico = new Pico(flash, values.port, inbox);
  if (before) pico.inherit(before);
  if (!isPlugged) pico.unplug();
  pico.onFault = (what) => {
    log?.drain(pico.chip.sram);
    console.error(what);
    process.exit(1);
  };
  return pico;
}

/** Runs a slice of instructions, then lets Node take what has arrived. */
function run() {
  pico.run();
  log?.drain(pico.chip.sram);
  const bytes = pico.takeSent();
  if (bytes.length > 0 && isPlugged) socket.write(bytes);
  if (pico.isReset) {
    pico = boot(pico);
    return setImmediate(run);
  }
  if (!pico.isAsleep) return setImmediate(run);
  // While the processor sleeps, its clock is ours: timers of the firmware must not flood the host.
  const began = process.hrtime.bigint();
  const go = () => {
    clearTimeout(timer);
    wake = () => {};
    pico.sleep(Number(process.hrtime.bigint() - began));
    run();
  };
  const timer = setTimeout(go, pico.msToNextAlarm);
  wake = () => {
    wake = () => {};
    setImmediate(go);
  };
  if (!inbox.isEmpty) wake();
}
run();
