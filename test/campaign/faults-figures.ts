/** What a history holds in numbers, for a report. */
import { type Entry, isRefused, operationsOf } from './faults-history.js'

const only = <T extends Entry['type']>(history: readonly Entry[], type: T) =>
  history.filter((entry): entry is Extract<Entry, { type: T }> => entry.type === type)

export function figuresOf(history: readonly Entry[]) {
  const operations = operationsOf(history)
  const count = (items: readonly unknown[]) => items.length
  const faults: Record<string, number> = {}
  for (const { fault } of only(history, 'fault')) faults[fault] = (faults[fault] ?? 0) + 1
  return {
    operations: count(operations),
    answered: count(operations.filter(({ end }) => end.type === 'ok')),
    refused: count(operations.filter(isRefused)),
    unknown: count(operations.filter(({ end }) => end.type === 'refused' && end.outcome === 'unknown')),
    unanswered: count(operations.filter(({ end }) => end.type === 'unanswered')),
    commands: count(only(history, 'command')),
    handed_over: count(only(history, 'handed_over')),
    messages: only(history, 'stream').reduce((sum, { messages }) => sum + messages.length, 0),
    heard: count(only(history, 'heard')),
    gaps: count(only(history, 'gap')),
    faults,
  }
}
