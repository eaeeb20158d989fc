// The Pico: rp2040js's RP2040 with what firmware on embassy-rp needs beyond rp2040js 1.4.1. Nothing in the package is
// changed; single methods are overridden, each with the reason beside it.

import { BasePeripheral, RP2040 } from 'rp2040js';
import { BootRom } from './boot_rom.mjs';
import { XIP } from './flash.mjs';
import { UartPort } from './uart.mjs';
import { UsbPort } from './usb.mjs';

/** The second boot stage is 256 bytes, then comes the vector table. */
const VECTORS = XIP + 0x100;

const NANOSECONDS_PER_CYCLE = 1e9 / 125e6;
/** Instructions between two looks at the socket. */
const SLICE = 200_000;
/** Instructions between two looks at what the host has sent. */
const FEED_EVERY = 64;
const LONGEST_SLEEP_MS = 1000;
const TIMER = 0x40054;
const WATCHDOG = 0x40058;

/** rp2040js has no XIP_CTRL: the cache is always ready, and no background read is under way. */
class XipControl extends BasePeripheral {
  static ADDRESS = 0x14000;

  readUint32(offset) {
    const STAT = 0x08;
    const FLUSH_READY = 1 << 0;
    const FIFO_EMPTY = 1 << 1;
    return offset === STAT ? FLUSH_READY | FIFO_EMPTY : 0;
  }

  writeUint32() {}
}

/** rp2040js's flash answers no commands but a read of its status: this one also tells its number. */
function answerUniqueId(ssi, id) {
  const DATA = 0x60;
  const READ_UNIQUE_ID = 0x4b;
  const DUMMY_BYTES = [0, 0, 0, 0];
  const [read, write] = [ssi.readUint32.bind(ssi), ssi.writeUint32.bind(ssi)];
  let answer = [];
  ssi.writeUint32 = (offset, value) => {
    if (offset === DATA && (value & 0xff) === READ_UNIQUE_ID) answer = [...DUMMY_BYTES, ...id];
    else write(offset, value);
  };
  ssi.readUint32 = (offset) => (offset === DATA && answer.length > 0 ? answer.shift() : read(offset));
}

/**
 * rp2040js lets an alarm of the timer fire up to a microsecond early. embassy then sets it again, and one that is set a moment too
 * late fires after 71 minutes: until then nothing that waits for a time wakes up.
 */
function fireOnTime(timer, clock) {
  const MICROSECOND = 1000;
  for (const { clockAlarm } of timer.alarms) {
    const schedule = clockAlarm.schedule.bind(clockAlarm);
    clockAlarm.schedule = (nanoseconds) => {
      const due = Math.ceil((clock.nanos + nanoseconds) / MICROSECOND) * MICROSECOND;
      // One more, so that no rounding makes it early again.
      schedule(due - clock.nanos + 1);
    };
  }
}

export class Pico {
  #inbox;
  #port;
  #rom;
  isReset = false;
  /** Called when the firmware stops at a breakpoint or an undefined instruction, as it does after a panic. */
  onFault = () => {};

  constructor(flash, port, inbox) {
    const chip = new RP2040();
    this.chip = chip;
    this.#inbox = inbox;
    chip.flash.set(flash.bytes);
    // Both see every change of the flash.
    flash.bytes = chip.flash;
    this.#rom = new BootRom(chip, flash);
    chip.peripherals[XipControl.ADDRESS] = new XipControl(chip, 'XIP_CTRL');
    answerUniqueId(chip.peripherals[0x18000], flash.id);
    chip.logger = {
      debug() {},
      warn() {},
      error: (component, text) => console.error(`${component}: ${text}`),
      // rp2040js only logs SEV, with which embassy's executor wakes itself.
      info: (component, text) => {
        if (text === 'SEV') chip.core.eventRegistered = true;
      },
    };
    chip.onBreak = (code) => this.onFault(`stopped at ${chip.core.PC.toString(16)} (code ${code})`);
    fireOnTime(chip.peripherals[TIMER], chip.clock);
    const watchdog = chip.peripherals[WATCHDOG];
    watchdog.onWatchdogTrigger = () => {
      this.isReset = true;
      // Otherwise its alarm fires again and again at the same time.
      watchdog.alarm.enable = false;
    };
    this.#port = port === 'usb' ? new UsbPort(chip, inbox) : new UartPort(chip, inbox);
    // What the second boot stage does.
    chip.core.VTOR = VECTORS;
    chip.core.SP = chip.readUint32(VECTORS);
    chip.core.PC = chip.readUint32(VECTORS + 4) & ~1;
  }

  /** Takes over what a reset of `before` leaves as it is: the RAM, and why it was reset. */
  inherit(before) {
    this.chip.sram.set(before.chip.sram);
    this.chip.peripherals[WATCHDOG].reason = before.chip.peripherals[WATCHDOG].reason;
  }

  get isAsleep() {
    return this.chip.core.waiting;
  }

  get msToNextAlarm() {
    return Math.min(LONGEST_SLEEP_MS, Math.max(0, this.chip.clock.nanosToNextAlarm / 1e6));
  }

  /** Executes a slice of instructions, or fewer if the processor goes to sleep or is reset. */
  run() {
    const { core, clock } = this.chip;
    this.#port.feed();
    for (let left = SLICE; left > 0 && !this.isReset; left--) {
      if (core.waiting) {
        this.#port.feed();
        if (core.waiting) return;
      }
      this.#rom.step(core);
      clock.tick(core.executeInstruction() * NANOSECONDS_PER_CYCLE);
      if (left % FEED_EVERY === 0 && !this.#inbox.isEmpty) this.#port.feed();
    }
  }

  /**
   * Lets the clock go on while the processor sleeps, at most to the next alarm. The watchdog stands still meanwhile: time in which a
   * busy machine did not let this process run is not the firmware's fault.
   */
  sleep(nanoseconds) {
    const { clock } = this.chip;
    const { timer } = this.chip.peripherals[WATCHDOG];
    const isWatched = timer.enable;
    timer.enable = false;
    clock.tick(Math.min(nanoseconds, clock.nanosToNextAlarm || Infinity));
    timer.enable = isWatched;
  }

  /** Takes the cable away, or brings it back, while the Pico runs on. */
  unplug() {
    this.#port.unplug();
  }

  plug() {
    this.#port.plug();
  }

  /** What the board has sent since the last call. */
  takeSent() {
    return this.#port.takeSent();
  }
}
