// A boot ROM of our own: rp2040js comes without one.
//
// Firmware finds the ROM's functions by two-letter tags, through a lookup function whose address is in the ROM's header
// (RP2040 datasheet, 2.8.3). Here the lookup is real code, and each function a bare return: its work is done outside of
// the processor when the program counter gets there.

const HEADER = { version: 0x13, functions: 0x14, data: 0x16, lookup: 0x18 };
const LOOKUP = 0x40;
const TABLE = 0x100;
const EMPTY_TABLE = 0x180;
const FUNCTIONS = 0x200;
const FUNCTION_BYTES = 16;
const END = 0x4000;

const BX_LR = 0x4770;
const THUMB = 1;

/** uint16_t *lookup(uint16_t *table, uint32_t tag): r0 is the table, r1 the tag. */
const LOOKUP_CODE = [
  0x8802, // next:  ldrh r2, [r0]
  0x2a00, //        cmp  r2, #0
  0xd003, //        beq  none
  0x428a, //        cmp  r2, r1
  0xd003, //        beq  found
  0x3004, //        adds r0, #4
  0xe7f8, //        b    next
  0x2000, // none:  movs r0, #0
  BX_LR, //         bx   lr
  0x8840, // found: ldrh r0, [r0, #2]
  BX_LR, //         bx   lr
];

export class BootRom {
  /** What is done at which address. */
  #work = new Map();

  /** Writes the ROM of `chip`, whose flash functions act on `flash`. */
  constructor(chip, flash) {
    const rom = new DataView(chip.bootrom.buffer);
    rom.setUint8(HEADER.version, 2);
    rom.setUint16(HEADER.functions, TABLE, true);
    rom.setUint16(HEADER.data, EMPTY_TABLE, true);
    rom.setUint16(HEADER.lookup, LOOKUP | THUMB, true);
    LOOKUP_CODE.forEach((code, index) => rom.setUint16(LOOKUP + 2 * index, code, true));

    const copy = (to, from, length) => {
      for (let i = 0; i < length; i++) chip.writeUint8(to + i, chip.readUint8(from + i));
    };
    const data = (address, length) => Uint8Array.from({ length }, (_, i) => chip.readUint8(address + i));
    const nothing = () => {};
    const functions = {
      MC: copy, // memcpy
      C4: copy, // memcpy44
      IF: nothing, // connect_internal_flash
      EX: nothing, // flash_exit_xip
      FC: nothing, // flash_flush_cache
      CX: nothing, // flash_enter_cmd_xip
      RE: (from, length) => flash.erase(from, length), // flash_range_erase
      RP: (to, from, length) => flash.program(to, data(from, length)), // flash_range_program
    };
    Object.entries(functions).forEach(([tag, work], index) => {
      const address = FUNCTIONS + FUNCTION_BYTES * index;
      rom.setUint16(address, BX_LR, true);
      rom.setUint16(TABLE + 4 * index, tag.charCodeAt(0) | (tag.charCodeAt(1) << 8), true);
      rom.setUint16(TABLE + 4 * index + 2, address | THUMB, true);
      this.#work.set(address, work);
    });
  }

  /** Does the work of the function that the processor is about to enter, if it is one. */
  step(core) {
    if (core.PC < END) this.#work.get(core.PC)?.(...Array.from(core.registers.slice(0, 3), (word) => word >>> 0));
  }
}
