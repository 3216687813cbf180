/** A part of a page with its heading, what is known of its answer, and that answer once it is there. */
import type { ComponentChildren, JSX } from 'preact'
import { NOT_SCOPABLE } from '../answers.js'
import type { useAnswer } from '../hooks.js'
import { ProblemNote, State } from './state.js'

interface CardProps<T> {
  title: string
  /** Where all of it is. */
  href?: string
  answer: ReturnType<typeof useAnswer<T>>
  /** More text for the line under the heading. */
  note?: ComponentChildren
  /** Why a record may not be there. */
  gone?: ComponentChildren
  class?: string
  /** It is what the page is about. */
  isMain?: true
  children: (value: T) => ComponentChildren
}

export function Card<T>(props: CardProps<T>): JSX.Element | null {
  const { title, href, answer, note, gone, class: name = '', isMain, children } = props
  const { value, problem, isOld } = answer
  // A secondary card without access or without data is not shown.
  if (!isMain && (problem?.code === NOT_SCOPABLE || problem?.status === 501)) return null
  return (
    <section class={`card ${name}`}>
      {isMain ? <h1>{title}</h1> : <h2>{href ? <a href={href}>{title}</a> : title}</h2>}
      <State answer={answer as never}>{note}</State>
      {/* What was known stays, and its line says why it is old: nothing moves. */}
      {problem && value === null && <ProblemNote problem={problem} gone={gone} />}
      {value !== null && <div class={isOld ? 'old' : ''}>{children(value)}</div>}
    </section>
  )
}
