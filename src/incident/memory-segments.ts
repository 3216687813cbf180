/** What a recorder keeps in memory: compressed segments, and the rows that ended badly. */
import { isObject, isText } from '../internal/relay-client/wire.js'
import type { IncidentPart } from './format.js'
import { type Part, type Row, rowIdOf } from './parts.js'

/** Characters that are compressed at once. */
export const CHUNK_CHARS = 262_144

// A segment in memory: its text, compressed in chunks.

interface Chunk {
  readonly from: number
  readonly text: string | Uint8Array
}

/** A segment of a recording, as the recorder keeps it. */
export interface MemorySegment {
  readonly from: number
  to: number
  readonly continues: boolean
  chunks: Chunk[]
  /** Lines that are not compressed yet, from `openFrom`. */
  open: string
  openFrom: number
  /** Bytes of the chunks. */
  bytes: number
  /** Characters before compression. */
  chars: number
}

const through = (text: string | Uint8Array, stream: CompressionStream | DecompressionStream) =>
  new Response(new Blob([text as string]).stream().pipeThrough(stream as never))

async function compressed(text: string): Promise<string | Uint8Array> {
  if (typeof CompressionStream === 'undefined') return text
  return new Uint8Array(await through(text, new CompressionStream('gzip')).arrayBuffer())
}

const expanded = (text: string | Uint8Array): Promise<string> | string =>
  typeof text === 'string' ? text : through(text, new DecompressionStream('gzip')).text()

/** Compresses the lines that are not compressed yet. */
export async function closeChunk(segment: MemorySegment): Promise<void> {
  if (segment.open === '') return
  const text = await compressed(segment.open)
  segment.chunks.push({ from: segment.openFrom, text })
  segment.bytes += text.length
  segment.open = ''
}

/** The text of the segment up to `instant`, in epoch ms. */
export async function textUntil({ chunks, open, openFrom }: MemorySegment, instant: number): Promise<string> {
  let text = ''
  // A copy: a chunk that is closed meanwhile is what is open here.
  for (const chunk of [...chunks]) if (chunk.from <= instant) text += await expanded(chunk.text)
  return openFrom <= instant ? text + open : text
}

// Rows that ended badly: kept for the whole time, whatever else happens.

const BAD = /^(?:failed|refused|rejected|expired|timed_out|unanswered|disconnected|crashed|browser_disconnected)$/
const BAD_FIELDS = ['state', 'status', 'status_reason', 'outcome'] as const

/** Whether a row says that something failed, was refused, expired, disconnected or crashed. */
export function isBad({ acknowledgement, terminal, ...row }: Row): boolean {
  const states = [acknowledgement, terminal].map((one) => (isObject(one) ? one.state : undefined))
  return [...states, ...BAD_FIELDS.map((name) => row[name])].some((value) => isText(value) && BAD.test(value))
}

interface Pinned {
  readonly part: Part
  readonly text: string
  readonly at: number
}

/** Keeps rows for `keepMs`, within `maxChars`; the oldest leave first. */
export function createPins(maxChars: number, keepMs: number) {
  const pins = new Map<string, Pinned>()
  let chars = 0
  function drop(key: string) {
    chars -= pins.get(key)?.text.length ?? 0
    pins.delete(key)
  }
  return {
    add(part: Part, row: Row, at: number): void {
      const key = `${part.route} ${rowIdOf(part, row)}`
      const known = pins.get(key)
      const text = JSON.stringify(row)
      drop(key)
      // The first time counts: a row that is seen again has not ended again.
      pins.set(key, { part, text, at: known?.at ?? at })
      chars += text.length
    },
    evict(now: number): void {
      for (const [key, { at }] of pins) if (chars > maxChars || at < now - keepMs) drop(key)
    },
    first: () => [...pins.values()].reduce((first, { at }) => Math.min(first, at), Number.POSITIVE_INFINITY),
    /** The rows that had ended by `instant`. */
    partsAt(instant: number): IncidentPart[] {
      const rows = new Map<Part, Row[]>()
      for (const { part, text, at } of pins.values())
        if (at <= instant) {
          const list = rows.get(part) ?? []
          rows.set(part, list)
          list.push(JSON.parse(text))
        }
      return [...rows].map(([{ route }, list]) => ({ route, rows: list }))
    },
  }
}
