/** Splits a stream of the store's protocol into complete messages, whatever they contain. */

const LF = 10
const CR = 13
const AGGREGATES = { '*': 1, '~': 1, '>': 1, '%': 2, '|': 2 } as const
const BULKS = '$=!'

/** Where the message that begins at `from` ends, or -1 while it has not come whole. */
function endOf(bytes: Buffer, from: number): number {
  const lf = bytes.indexOf(LF, from)
  if (lf < 0 || bytes[lf - 1] !== CR) return -1
  const kind = String.fromCharCode(bytes[from] as number)
  const size = Number(bytes.toString('latin1', from + 1, lf - 1))
  if (BULKS.includes(kind)) {
    const end = size < 0 ? lf + 1 : lf + 1 + size + 2
    return end <= bytes.length ? end : -1
  }
  if (!(kind in AGGREGATES)) return lf + 1
  let end = lf + 1
  // An attribute precedes the value that it belongs to.
  const values = Math.max(0, size) * AGGREGATES[kind as keyof typeof AGGREGATES] + (kind === '|' ? 1 : 0)
  for (let i = 0; i < values && end >= 0; i++) end = end < bytes.length ? endOf(bytes, end) : -1
  return end
}

/** Creates a function that calls `onMessage` with each complete message of the chunks passed to it. */
export function createCutter(onMessage: (message: Buffer) => void): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0)
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    let from = 0
    while (from < rest.length) {
      const end = endOf(rest, from)
      if (end < 0) break
      onMessage(rest.subarray(from, end))
      from = end
    }
    rest = rest.subarray(from)
  }
}

/** Returns the parts of a command: a list of bulk strings, with its name in capitals. */
export function textFrom(message: Buffer): string[] {
  const words: string[] = []
  let at = message.indexOf(LF) + 1
  while (at > 0 && at < message.length) {
    const lf = message.indexOf(LF, at)
    const size = Number(message.toString('latin1', at + 1, lf - 1))
    words.push(message.toString('utf8', lf + 1, lf + 1 + size))
    at = lf + 1 + size + 2
  }
  return words.map((word, i) => (i === 0 ? word.toUpperCase() : word))
}
