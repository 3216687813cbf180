/** How a value becomes JSON text that its schema has read: the wall between what is handed over and what leaves. */
import * as z from 'zod'
import { type BadRecord, faultsOf, textOfFaults, toBadRecord } from '../contract/bad-record.js'

// More is held by nobody who asks: a list is asked for again with a smaller limit, and a record alone cannot be shown.
const BODY_LENGTH = 16_777_216

/** What an inspector handed over is not what its schema accepts. The message names the place, never a value. */
export class UnacceptableAnswer extends TypeError {
  override readonly name = 'UnacceptableAnswer'
}

/** The answer is one that could be read, but is longer than any may be. */
export class TooLarge extends UnacceptableAnswer {}

/** Some records of a list are not what their schema accepts; the others are. */
export class RefusedRecords extends UnacceptableAnswer {
  constructor(
    /** The member that is the list. */
    readonly list: string,
    /** Each under its place in the list. */
    readonly refused: ReadonlyMap<number, BadRecord>,
  ) {
    super(`${list}: ${[...refused.values()][0]?.message}`)
  }
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
  throw new UnacceptableAnswer(textOfFaults(faultsOf(result.error)), { cause: result.error })
}

type Encoder = (value: unknown) => string

const encoders = new WeakMap<z.ZodType, Encoder>()

/** A record that cannot change is read and encoded once, however often and wherever it is listed. */
function recordEncoder(schema: z.ZodType): Encoder {
  const known = encoders.get(schema)
  if (known) return known
  const texts = new WeakMap<object, string>()
  const toText: Encoder = (record) => {
    if (record === null || typeof record !== 'object') return read(schema, record)
    const kept = texts.get(record)
    if (kept !== undefined) return kept
    const text = read(schema, record)
    if (isImmutable(record)) texts.set(record, text)
    return text
  }
  encoders.set(schema, toText)
  return toText
}

const isRecordList = (schema: unknown): schema is z.ZodArray<z.ZodObject> =>
  schema instanceof z.ZodArray && schema.element instanceof z.ZodObject

/** Adds the text of a member to `pieces`, which begin with the brace; nothing for a member that is left out. */
type MemberEncoder = (pieces: string[], value: unknown) => void

const opening = (pieces: string[], name: string): string => `${pieces.length > 1 ? ',' : ''}"${name}":`

function listEncoder(name: string, element: z.ZodObject): MemberEncoder {
  const toText = recordEncoder(element)
  return (pieces, records) => {
    if (!Array.isArray(records)) throw new UnacceptableAnswer(`${name}: must be a list`)
    pieces.push(opening(pieces, name), '[')
    let refused: Map<number, BadRecord> | undefined
    // By index: a hole is read too, and refused.
    for (let i = 0; i < records.length; i++) {
      try {
        pieces.push(i > 0 ? ',' : '', toText(records[i]))
      } catch (error) {
        refused ??= new Map()
        refused.set(i, toBadRecord(element, records[i], i, error instanceof UnacceptableAnswer ? error.cause : error))
      }
    }
    if (refused) throw new RefusedRecords(name, refused)
    pieces.push(']')
  }
}

function valueEncoder(name: string, field: z.ZodType): MemberEncoder {
  return (pieces, value) => {
    const text = read(field, value)
    if (text !== undefined) pieces.push(opening(pieces, name), text)
  }
}

/**
 * An envelope is an object with lists of records; its fields are encoded one by one, so that records are shared. All
 * pieces are joined once: each further copy of a page costs a request more than the rest of its encoding.
 */
function createEnvelopeEncoder(schema: z.ZodObject): Encoder {
  const members = (Object.entries(schema.shape) as [string, z.ZodType][]).map(([name, field]) => ({
    name,
    add: isRecordList(field) ? listEncoder(name, field.element) : valueEncoder(name, field),
  }))
  return (value) => {
    // What is not an object has none of the fields, and the schema says so.
    const given = value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : {}
    const pieces = ['{']
    for (const { name, add } of members) add(pieces, given[name])
    pieces.push('}')
    return pieces.join('')
  }
}

/**
 * Makes values into JSON text as `schema` reads them: unknown keys are dropped.
 *
 * @returns a function that throws UnacceptableAnswer (RefusedRecords where only records of a list are), or whatever a getter or `JSON.stringify` throws: all of it is a
 * fault of the source.
 */
export function createEncoder(schema: z.ZodType): Encoder {
  const envelope = schema instanceof z.ZodObject && Object.values(schema.shape).some(isRecordList)
  const toText: Encoder = envelope ? createEnvelopeEncoder(schema) : recordEncoder(schema)
  return (value) => {
    const text = toText(value)
    if (text.length > BODY_LENGTH)
      throw new TooLarge(`the answer has ${text.length} characters, at most ${BODY_LENGTH}`)
    return text
  }
}

/** `value` as JSON text, for an answer that is made too rarely to keep its encoder. */
export const encode = (schema: z.ZodType, value: unknown): string => createEncoder(schema)(value)
