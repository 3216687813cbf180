/** What viewers may ask of the notes: three actions by name, each with its own parameters, one that needs approval. */
import { ActionFailure, createActionHandlers } from 'relayscope/cooperative-site'
import * as z from 'zod'
import { NOTES_MAX } from './notes.mjs'

const TEXT_LENGTH = 500

/** `changed(id)` is called after each change. */
export function createNoteActions({ notes, changed }) {
  const actions = createActionHandlers()

  actions.handle('list_notes', { parameters: z.strictObject({}) }, () => ({ notes: notes.list() }))

  const newNote = z.strictObject({ text: z.string().trim().min(1).max(TEXT_LENGTH), keep: z.boolean().default(false) })
  actions.handle('add_note', { parameters: newNote }, async ({ text, keep }) => {
    if (notes.list().length >= NOTES_MAX) throw new ActionFailure('notebook_full', 'Archive a note first')
    const note = await notes.add({ text, keep })
    changed(note.id)
    return note
  })

  // #region action
  // The approval: a note that is marked "keep" is never archived.
  const approve = ({ id }) => notes.get(id)?.keep !== true
  const oneNote = z.strictObject({ id: z.int().min(1) })
  actions.handle('archive_note', { parameters: oneNote, approve, lease: true }, async ({ id }) => {
    if (!notes.get(id)) throw new ActionFailure('no_such_note', 'The note is already archived')
    const note = await notes.archive(id)
    changed(note.id)
    return note
  })
  // #endregion

  return actions
}
