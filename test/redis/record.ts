/** The record of a command in a store, to be spoilt by a test. */
import { RECORD_FIELDS } from '../../src/redis/delivery/record.js'

type Send = (...command: string[]) => Promise<unknown>
type Field = (typeof RECORD_FIELDS)[number]

/** Replaces one field of the record under `key` with `value`. */
export async function spoil(send: Send, key: string, field: Field, value: string): Promise<void> {
  const texts = String(await send('GET', key)).split('\0')
  texts[RECORD_FIELDS.indexOf(field)] = value
  await send('SET', key, texts.join('\0'))
}
