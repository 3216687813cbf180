/** A short digest for change detection. It is not authentication: collisions can be constructed. */

const encoder = new TextEncoder()
/** For texts of up to a third of its length. */
const scratch = new Uint8Array(98_304)
const scratchView = new DataView(scratch.buffer)

/**
 * 64 bits over `text` in 16 hexadecimal digits: two independent 32-bit multiplicative hashes over the UTF-8 bytes, four at a
 * time. For 16 KiB this takes a third of the time of reading one character after the other.
 */
export function digest64(text: string): string {
  const isLong = text.length * 3 > scratch.length
  const bytes = isLong ? encoder.encode(text) : scratch
  const view = isLong ? new DataView(bytes.buffer) : scratchView
  const length = isLong ? bytes.length : encoder.encodeInto(text, scratch).written
  let a = 0xdeadbeef
  let b = 0x41c6ce57
  const mix = (unit: number) => {
    a = Math.imul(a ^ unit, 2654435761)
    a = (a << 13) | (a >>> 19)
    b = Math.imul(b ^ unit, 1597334677)
    b = (b << 17) | (b >>> 15)
  }
  const whole = length & ~3
  for (let i = 0; i < whole; i += 4) mix(view.getInt32(i, true))
  for (let i = whole; i < length; i++) mix(bytes[i] as number)
  mix(length)
  a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909)
  b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909)
  return (a >>> 0).toString(16).padStart(8, '0') + (b >>> 0).toString(16).padStart(8, '0')
}
