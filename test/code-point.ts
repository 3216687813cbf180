import fc from 'fast-check'

/** A unit of any text, lone surrogates among them. The `binary` of fast-check makes a table of them all first, for a second. */
export const codePoint = fc.nat(0x10_ffff).map((point) => String.fromCodePoint(point))
