/** The fields of one record, each under the name that the API gives it. */
import type { ComponentChildren, JSX } from 'preact'
import { plain } from '../words.js'
import { Json } from './value.js'

interface FieldsProps<T> {
  record: T
  /** What is more than its value: a link, a word with a tone. `null` leaves it out. */
  show?: { readonly [Name in keyof T]?: ComponentChildren }
}

export function Fields<T extends object>({ record, show = {} }: FieldsProps<T>): JSX.Element {
  const shown = (Object.keys(record) as (keyof T & string)[]).filter((name) => show[name] !== null)
  return (
    <dl class="fields">
      {shown.map((name) => (
        <div key={name}>
          <dt>{plain(name)}</dt>
          <dd>{show[name] ?? <Json value={record[name]} />}</dd>
        </div>
      ))}
    </dl>
  )
}
