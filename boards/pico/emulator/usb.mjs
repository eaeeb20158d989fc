// The USB port of the Pico: a host that opens its CDC serial port, and the cable between them.

import { DataDirection, SetupRecipient, SetupType, USBCDC, createSetupPacket } from 'rp2040js';

const SET_CONTROL_LINE_STATE = 0x22;
const DTR_AND_RTS = 0b11;

// Buffer control registers in the controller's memory: two per endpoint, first the one to the host.
const BUFFER_CONTROL = 0x80;
const FIRST_READ = 0x8c;
const LAST_READ = 0xfc;
const IS_READ = 1 << 2;
const AVAILABLE = 1 << 10;
const LENGTH = 0x3ff;

// The status register of the controller.
const SIE_STATUS = 0x50;
const SUSPENDED = 1 << 4;

const FULL = 64;
/** After a full packet the device would wait for the rest of a transfer. */
const LONGEST = FULL - 1;

export class UsbPort {
  #usb;
  #cdc;
  #inbox;
  #sent = [];
  /** Full packets, which a host holds back until the transfer ends in a short one. */
  #held = [];
  /** Bytes that the device is ready to read. */
  #room = 0;
  #isPlugged = true;

  constructor(chip, inbox) {
    const usb = chip.usbCtrl;
    const cdc = new USBCDC(usb);
    this.#usb = usb;
    this.#cdc = cdc;
    this.#inbox = inbox;
    cdc.onSerialData = (bytes) => {
      this.#held.push(...bytes);
      if (bytes.length < FULL) this.#sent.push(...this.#held.splice(0));
    };

    // rp2040js sets DTR on the device. It belongs to the interface, where embassy looks for it.
    cdc.cdcSetControlLineState = () => {
      usb.sendSetupPacket(
        createSetupPacket({
          dataDirection: DataDirection.HostToDevice,
          type: SetupType.Class,
          recipient: SetupRecipient.Interface,
          bRequest: SET_CONTROL_LINE_STATE,
          wValue: DTR_AND_RTS,
          wIndex: 0,
          wLength: 0,
        }),
      );
      cdc.initialized = true;
    };

    // A device without its host is not reset.
    usb.onUSBEnabled = () => {
      if (this.#isPlugged) usb.resetDevice();
    };

    // rp2040js does not let firmware clear this bit.
    const write = usb.writeUint32.bind(usb);
    usb.writeUint32 = (offset, value) => {
      if (offset === SIE_STATUS) usb.sieStatus &= ~(usb.rawWriteValue & SUSPENDED);
      write(offset, value);
    };

    // rp2040js answers a read with an empty packet where a host would let the device wait.
    const answer = usb.onEndpointRead;
    usb.onEndpointRead = (endpoint, size) => {
      if (endpoint !== cdc.outEndpoint) return answer(endpoint, size);
      this.#room = size;
      this.feed();
    };

    // rp2040js takes a buffer back when a read begins, and embassy takes that for the end of the read. The controller
    // does so when the packet is there.
    const updated = usb.DPRAMUpdated.bind(usb);
    const finish = usb.finishRead.bind(usb);
    usb.DPRAMUpdated = (offset, value) => {
      // Nobody fetches what is sent, and nobody sends: it waits for the next reset.
      if (!this.#isPlugged) return;
      const isRead = offset >= FIRST_READ && offset <= LAST_READ && (offset & IS_READ) !== 0;
      if (isRead && (value & AVAILABLE) !== 0) usb.onEndpointRead((offset - BUFFER_CONTROL) >> 3, value & LENGTH);
      else updated(offset, value);
    };
    usb.finishRead = (endpoint, bytes) => {
      const offset = BUFFER_CONTROL + 8 * endpoint + IS_READ;
      const memory = chip.usbDPRAMView;
      memory.setUint32(offset, memory.getUint32(offset, true) & ~AVAILABLE, true);
      finish(endpoint, bytes);
    };
  }

  /** Takes the host away. A bus on which nothing happens is suspended. */
  unplug() {
    this.#isPlugged = false;
    this.#room = 0;
    this.#sent = [];
    this.#held = [];
    this.#usb.sieStatus |= SUSPENDED;
    this.#usb.sieStatusUpdated();
  }

  /** Brings a host that does not know the device, and resets it. */
  plug() {
    this.#isPlugged = true;
    const unknown = { initialized: false, descriptorsSize: null, descriptors: [], inEndpoint: -1, outEndpoint: -1 };
    Object.assign(this.#cdc, unknown);
    this.#usb.resetDevice();
  }

  /** Sends one packet of the host, if the device is ready for it. */
  feed() {
    if (this.#room === 0 || this.#inbox.isEmpty) return;
    const bytes = [];
    while (bytes.length < Math.min(this.#room, LONGEST) && !this.#inbox.isEmpty) bytes.push(this.#inbox.pull());
    this.#room = 0;
    this.#usb.endpointReadDone(this.#cdc.outEndpoint, Uint8Array.from(bytes));
  }

  takeSent() {
    const sent = Buffer.from(this.#sent);
    this.#sent = [];
    return sent;
  }
}
