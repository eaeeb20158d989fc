// UART 0 of the Pico as its line to the host.

const DATA = 0x00;
const DMA_CONTROL = 0x48;
const TRANSMIT_INTERRUPT = 1 << 5;
/** Half of the receiver's FIFO. */
const FEED = 16;

export class UartPort {
  #uart;
  #inbox;
  #sent = [];

  constructor(chip, inbox) {
    const uart = chip.uart[0];
    this.#uart = uart;
    this.#inbox = inbox;
    const [read, write] = [uart.readUint32.bind(uart), uart.writeUint32.bind(uart)];
    let dmaControl = 0;

    // rp2040js raises the transmit interrupt for ever. The PL011 raises it once, when its FIFO runs empty.
    uart.checkInterrupts = () =>
      chip.setInterrupt(uart.irq, (uart.interruptStatus & uart.interruptMask) !== 0);
    // rp2040js reads all ones from the register that it lacks, and embassy takes it that DMA does its work.
    uart.readUint32 = (offset) => (offset === DMA_CONTROL ? dmaControl : read(offset));
    uart.writeUint32 = (offset, value) => {
      if (offset === DMA_CONTROL) {
        dmaControl = value;
        return;
      }
      write(offset, value);
      if (offset === DATA) {
        uart.interruptStatus |= TRANSMIT_INTERRUPT;
        uart.checkInterrupts();
      }
    };
    uart.onByte = (byte) => this.#sent.push(byte);
  }

  /** Passes bytes of the host to the receiver, as many as it has room for. */
  feed() {
    if (!this.#uart.enabled) return;
    while (!this.#inbox.isEmpty && this.#uart.rxFIFO.itemCount < FEED) this.#uart.feedByte(this.#inbox.pull());
  }

  /** A UART knows of no cable. */
  unplug() {}

  plug() {}

  takeSent() {
    const sent = Buffer.from(this.#sent);
    this.#sent = [];
    return sent;
  }
}
