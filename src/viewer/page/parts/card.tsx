/** A part of a page with its heading, what is known of its answer, and that answer once it is there. */
import type { ComponentChildren, JSX } from 'preact'
import type { useAnswer } from '../hooks.js'
import { State, Trouble } from './state.js'

interface CardProps<T> {
  title: string
  /** Where all of it is. */
  href?: string
  answer: ReturnType<typeof useAnswer<T>>
  /** What the line under the heading says beside. */
  note?: ComponentChildren
  class?: string
  /** It is what the page is about. */
  isMain?: true
  children: (value: T) => ComponentChildren
}

export function Card<T>({ title, href, answer, note, class: name = '', isMain, children }: CardProps<T>): JSX.Element {
  const { value, problem, isOld } = answer
  return (
    <section class={`card ${name}`}>
      {isMain ? <h1>{title}</h1> : <h2>{href ? <a href={href}>{title}</a> : title}</h2>}
      <State answer={answer as never}>{note && <> · {note}</>}</State>
      {problem && <Trouble problem={problem} />}
      {value !== null && <div class={isOld ? 'old' : ''}>{children(value)}</div>}
    </section>
  )
}
