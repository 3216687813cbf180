/** Serialises a value through its schema, so that only known fields leave the router. */
import * as z from 'zod'
import { atOnce, type Steps } from '../async/turns.js'
import { type BadRecord, faultsOf, textOfFaults, toBadRecord } from '../contract/bad-record.js'

// Maximum length of a response: a longer list is read again with a smaller limit; a longer record is an error.
const BODY_LENGTH = 16_777_216

/** An inspector's value does not match its schema. The message names the path, never a value. */
export class UnacceptableAnswer extends TypeError {
  override readonly name = 'UnacceptableAnswer'
}

/** The response exceeds the maximum length. */
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

/** The getter of a property, if it has one: for a data property a descriptor would be made in vain, dearer than all else. */
const getterOf: (this: object, name: string) => unknown = Reflect.get(Object.prototype, '__lookupGetter__')

/** Whether nothing below `value` can ever change: frozen data properties all the way down, no accessors. */
function isImmutable(value: unknown): boolean {
  // A function may be a `toJSON` that returns a different value each time.
  if (value === null || typeof value !== 'object') return typeof value !== 'function'
  if (!Object.isFrozen(value)) return false
  const prototype = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== Array.prototype && prototype !== null) return false
  const names = Object.getOwnPropertyNames(value)
  return names.every((name) => getterOf.call(value, name) === undefined && isImmutable(value[name as never]))
}

function read(schema: z.ZodType, value: unknown): string {
  const result = schema.safeParse(value)
  if (result.success) return JSON.stringify(result.data)
  throw new UnacceptableAnswer(textOfFaults(faultsOf(result.error)), { cause: result.error })
}

/** The serialised form of a record. For a frozen record it is cached, so an unchanged record keeps its identity. */
export interface RecordText {
  readonly text: string
}

interface RecordEncoder {
  (record: unknown): RecordText
  /** Whether it has encoded this record, which cannot change. */
  keeps(record: object): boolean
}

const encoders = new WeakMap<z.ZodType, RecordEncoder>()

/** A record that cannot change is read and encoded once, however often and wherever it is listed. */
export function recordEncoder(schema: z.ZodType): RecordEncoder {
  const known = encoders.get(schema)
  if (known) return known
  const texts = new WeakMap<object, RecordText>()
  function toText(record: unknown): RecordText {
    if (record === null || typeof record !== 'object') return { text: read(schema, record) }
    const kept = texts.get(record)
    if (kept !== undefined) return kept
    const made = { text: read(schema, record) }
    if (isImmutable(record)) texts.set(record, made)
    return made
  }
  const encoder = Object.assign(toText, { keeps: (record: object) => texts.has(record) })
  encoders.set(schema, encoder)
  return encoder
}

/** A member of a response: its text, or its records. */
export interface Member {
  readonly name: string
  readonly value: string | readonly RecordText[]
}

/** A serialised response. The full text is only joined when needed: comparing does not need it. */
export interface Encoded {
  /** Of an object with lists of records; empty for anything else. */
  readonly members: readonly Member[]
  readonly text: string
}

const isRecordList = (schema: unknown): schema is z.ZodArray<z.ZodObject> =>
  schema instanceof z.ZodArray && schema.element instanceof z.ZodObject

/** Records between two steps of an encoder. */
const STEP = 16

function listEncoder(name: string, element: z.ZodObject): (value: unknown) => Steps<Member> {
  const toText = recordEncoder(element)
  return function* (given) {
    if (!Array.isArray(given)) throw new UnacceptableAnswer(`${name}: must be a list`)
    const records: RecordText[] = []
    let refused: Map<number, BadRecord> | undefined
    // By index: a hole is read too, and refused.
    for (let i = 0; i < given.length; i++) {
      if (i % STEP === STEP - 1) yield
      try {
        records.push(toText(given[i]))
      } catch (error) {
        refused ??= new Map()
        refused.set(i, toBadRecord(element, given[i], i, error instanceof UnacceptableAnswer ? error.cause : error))
      }
    }
    if (refused) throw new RefusedRecords(name, refused)
    return { name, value: records }
  }
}

/** Returns `undefined` for an omitted member. */
function valueEncoder(name: string, field: z.ZodType): (value: unknown) => Member | undefined {
  return (value) => {
    const text: string | undefined = read(field, value)
    return text === undefined ? undefined : { name, value: text }
  }
}

/** All pieces are joined once: each further copy of a page costs a request more than the rest of its encoding. */
function joined(members: readonly Member[]): string {
  const pieces: string[] = []
  for (const { name, value } of members) {
    pieces.push(pieces.length > 0 ? ',"' : '{"', name, '":')
    if (typeof value === 'string') pieces.push(value)
    else {
      pieces.push('[')
      for (let i = 0; i < value.length; i++) pieces.push(i > 0 ? ',' : '', (value[i] as RecordText).text)
      pieces.push(']')
    }
  }
  pieces.push(pieces.length > 0 ? '}' : '{}')
  return pieces.join('')
}

/** The length of their text, or a few more: for each name its marks, for each record its comma. */
function lengthOf(members: readonly Member[]): number {
  let length = 2
  for (const { name, value } of members) {
    length += name.length + 6
    if (typeof value === 'string') length += value.length
    else for (const { text } of value) length += text.length + 1
  }
  return length
}

/** An object by its members. */
class Envelope implements Encoded {
  readonly members: readonly Member[]
  #text: string | undefined

  constructor(members: readonly Member[]) {
    this.members = members
    if (lengthOf(members) > BODY_LENGTH) checkLength(this.text.length)
  }

  get text(): string {
    this.#text ??= joined(this.members)
    return this.#text
  }
}

function checkLength(length: number): void {
  if (length > BODY_LENGTH) throw new TooLarge(`the response has ${length} characters, at most ${BODY_LENGTH}`)
}

/** An envelope is an object with lists of records; its fields are encoded one by one, so that records are shared. */
function createEnvelopeEncoder(schema: z.ZodObject): (value: unknown) => Steps<Encoded> {
  const members = (Object.entries(schema.shape) as [string, z.ZodType][]).map(([name, field]) => ({
    name,
    list: isRecordList(field) ? listEncoder(name, field.element) : undefined,
    value: valueEncoder(name, field),
  }))
  return function* (value) {
    // A non-object has no fields; the schema then reports them as missing.
    const given = value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : {}
    const made: Member[] = []
    for (const { name, list, value } of members) {
      const member = list ? yield* list(given[name]) : value(given[name])
      if (member) made.push(member)
    }
    return new Envelope(made)
  }
}

/**
 * Creates a serialiser for `schema`; unknown keys are dropped.
 *
 * @returns a stepwise function that throws UnacceptableAnswer (RefusedRecords if only records of a list are invalid),
 * or the error of a getter or `JSON.stringify`: all are faults of the source.
 */
export function createEncoder(schema: z.ZodType): (value: unknown) => Steps<Encoded> {
  if (schema instanceof z.ZodObject && Object.values(schema.shape).some(isRecordList))
    return createEnvelopeEncoder(schema)
  const toText = recordEncoder(schema)
  // biome-ignore lint/correctness/useYield: one record is one step
  return function* (value) {
    const { text } = toText(value)
    checkLength(text.length)
    return { members: [], text }
  }
}

/** Serialises `value` once, for responses too rare to keep a serialiser. */
export const encode = (schema: z.ZodType, value: unknown): string => atOnce(createEncoder(schema)(value)).text
