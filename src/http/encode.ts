/** How a value becomes JSON text that its schema has read: the wall between what is handed over and what leaves. */
import * as z from 'zod'

// A page of 500 records with hydrated payloads stays below it; more is a fault of the inspector, not an answer.
const BODY_LENGTH = 16_777_216

/** What an inspector handed over is not what its schema accepts. The message names the place, never a value. */
export class UnacceptableAnswer extends TypeError {
  override readonly name = 'UnacceptableAnswer'
}

/** Whether nothing below `value` can ever change: frozen data properties all the way down, no accessors. */
function isImmutable(value: unknown): boolean {
  // A function would be a `toJSON`, which may answer anew each time.
  if (value === null || typeof value !== 'object') return typeof value !== 'function'
  if (!Object.isFrozen(value)) return false
  const prototype = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== Array.prototype && prototype !== null) return false
  return Object.values(Object.getOwnPropertyDescriptors(value)).every(
    (property) => 'value' in property && isImmutable(property.value),
  )
}

function read(schema: z.ZodType, value: unknown): string {
  const result = schema.safeParse(value)
  if (result.success) return JSON.stringify(result.data)
  const issue = result.error.issues[0]
  throw new UnacceptableAnswer(`${issue?.path.join('.') || 'answer'}: ${issue?.code}`)
}

const encoded = new WeakMap<z.ZodType, WeakMap<object, string>>()

/** A record that cannot change is read and encoded once, however often it is listed. */
function encodeRecord(schema: z.ZodType, record: unknown): string {
  if (record === null || typeof record !== 'object') return read(schema, record)
  const texts = encoded.get(schema) ?? new WeakMap<object, string>()
  encoded.set(schema, texts)
  const known = texts.get(record)
  if (known !== undefined) return known
  const text = read(schema, record)
  if (isImmutable(record)) texts.set(record, text)
  return text
}

const isRecordList = (schema: unknown): schema is z.ZodArray<z.ZodObject> =>
  schema instanceof z.ZodArray && schema.element instanceof z.ZodObject

type Encoder = (value: unknown) => string

/** An envelope is an object with lists of records; its fields are encoded one by one, so that records are shared. */
function createEnvelopeEncoder(schema: z.ZodObject): Encoder {
  const fields = Object.entries(schema.shape) as [string, z.ZodType][]
  return (value) => {
    // What is no object has none of the fields, and the schema says so.
    const given = value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : {}
    const members: string[] = []
    for (const [name, field] of fields) {
      if (!isRecordList(field)) {
        const text = read(field, given[name])
        if (text !== undefined) members.push(`"${name}":${text}`)
        continue
      }
      const records = given[name]
      if (!Array.isArray(records)) throw new UnacceptableAnswer(`${name}: not a list`)
      members.push(`"${name}":[${records.map((record) => encodeRecord(field.element, record)).join(',')}]`)
    }
    return `{${members.join(',')}}`
  }
}

/**
 * Makes values into JSON text as `schema` reads them: unknown keys are dropped.
 *
 * @returns a function that throws UnacceptableAnswer, or whatever a getter or `JSON.stringify` throws: all of it is a
 * fault of the source.
 */
export function createEncoder(schema: z.ZodType): Encoder {
  const envelope = schema instanceof z.ZodObject && Object.values(schema.shape).some(isRecordList)
  const toText: Encoder = envelope ? createEnvelopeEncoder(schema) : (value) => encodeRecord(schema, value)
  return (value) => {
    const text = toText(value)
    if (text.length > BODY_LENGTH) throw new UnacceptableAnswer('the answer is too large')
    return text
  }
}

/** `value` as JSON text, for an answer that is made too rarely to keep its encoder. */
export const encode = (schema: z.ZodType, value: unknown): string => createEncoder(schema)(value)
