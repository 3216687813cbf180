/** Reads an OTLP request of metrics by the field numbers of opentelemetry/proto/metrics/v1. */

type Field = { number: number; varint?: bigint; bytes?: Buffer }

/** The fields of one message, in their order. */
function fieldsOf(bytes: Buffer): Field[] {
  const fields: Field[] = []
  let at = 0
  function varint(): bigint {
    let [value, shift] = [0n, 0n]
    for (;;) {
      const byte = bytes[at++]
      if (byte === undefined) throw new Error('a varint is cut off')
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
      shift += 7n
    }
  }
  while (at < bytes.length) {
    const tag = Number(varint())
    const [number, type] = [tag >> 3, tag & 7]
    if (type === 0) fields.push({ number, varint: varint() })
    else {
      const length = type === 2 ? Number(varint()) : type === 1 ? 8 : type === 5 ? 4 : Number.NaN
      if (!(at + length <= bytes.length)) throw new Error(`field ${number} of type ${type} is cut off`)
      fields.push({ number, bytes: bytes.subarray(at, at + length) })
      at += length
    }
  }
  return fields
}

const all = (bytes: Buffer, number: number) =>
  fieldsOf(bytes).flatMap((field) => (field.number === number && field.bytes ? [field.bytes] : []))
const first = (bytes: Buffer, number: number) => all(bytes, number)[0] ?? Buffer.alloc(0)
const text = (bytes: Buffer, number: number) => first(bytes, number).toString()
const varintOf = (bytes: Buffer, number: number) => fieldsOf(bytes).find((field) => field.number === number)?.varint
const doubleOf = (bytes: Buffer, number: number) => first(bytes, number).readDoubleLE()
const fixedOf = (bytes: Buffer, number: number) => first(bytes, number).readBigUInt64LE()
const numbers = (bytes: Buffer, read: (at: number) => number) =>
  Array.from({ length: bytes.length / 8 }, (_, i) => read(8 * i))

const attributesOf = (point: Buffer, number: number) =>
  Object.fromEntries(all(point, number).map((one) => [text(one, 1), text(first(one, 2), 1)]))

const ms = (nanoseconds: bigint) => Number(nanoseconds / 1_000_000n)

function numberPoint(point: Buffer) {
  const isInteger = first(point, 6).length > 0
  return {
    attributes: attributesOf(point, 7),
    at: ms(fixedOf(point, 3)),
    value: isInteger ? Number(first(point, 6).readBigInt64LE()) : doubleOf(point, 4),
  }
}

function histogramPoint(point: Buffer) {
  const [counts, bounds] = [first(point, 6), first(point, 7)]
  return {
    attributes: attributesOf(point, 9),
    at: ms(fixedOf(point, 3)),
    value: doubleOf(point, 5),
    count: Number(fixedOf(point, 4)),
    buckets: numbers(counts, (at) => Number(counts.readBigUInt64LE(at))),
    bounds: numbers(bounds, (at) => bounds.readDoubleLE(at)),
  }
}

interface Point {
  attributes: Record<string, string>
  /** Epoch ms. */
  at: number
  /** The sum, of a histogram. */
  value: number
  count?: number
  buckets?: number[]
  bounds?: number[]
}

export interface ReceivedMetric {
  scope: string
  name: string
  unit: string
  type: 'gauge' | 'sum' | 'histogram'
  isCumulative: boolean
  isMonotonic: boolean
  points: Point[]
}

const TYPES = { 5: 'gauge', 7: 'sum', 9: 'histogram' } as const
const CUMULATIVE = 2n

function metricOf(scope: string, metric: Buffer): ReceivedMetric {
  const data = fieldsOf(metric).find(({ number }) => number in TYPES)
  const type = TYPES[data?.number as keyof typeof TYPES]
  const points = all(data?.bytes as Buffer, 1)
  return {
    scope,
    name: text(metric, 1),
    unit: text(metric, 3),
    type,
    isCumulative: varintOf(data?.bytes as Buffer, 2) === CUMULATIVE,
    isMonotonic: varintOf(data?.bytes as Buffer, 3) === 1n,
    points: points.map(type === 'histogram' ? histogramPoint : numberPoint),
  }
}

/** The metrics of an ExportMetricsServiceRequest. @throws for invalid protobuf. */
export const readMetrics = (request: Buffer): ReceivedMetric[] =>
  all(request, 1).flatMap((resource) =>
    all(resource, 2).flatMap((scope) => all(scope, 2).map((metric) => metricOf(text(first(scope, 1), 1), metric))),
  )
