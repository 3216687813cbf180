/** The notes: a small list in a JSON file, written whole and replaced at once, so that a crash leaves the old or the new. */
import { readFile, rename, writeFile } from 'node:fs/promises'

/** More than fit on one page. */
export const NOTES_MAX = 500

/** Opens the notes in `file`, which need not exist yet. */
export async function openNotes(file) {
  const text = await readFile(file, 'utf8').catch((error) => {
    if (error.code === 'ENOENT') return '{"next_id":1,"notes":[]}'
    throw error
  })
  const kept = JSON.parse(text)
  let saving = Promise.resolve()

  /** One after another: two writers of one file would lose a note. */
  function save() {
    const json = JSON.stringify(kept, null, 2)
    const write = async () => {
      await writeFile(`${file}.new`, json)
      await rename(`${file}.new`, file)
    }
    saving = saving.then(write, write)
    return saving
  }

  return {
    list: () => kept.notes,
    get: (id) => kept.notes.find((note) => note.id === id),
    async add({ text, keep }) {
      const note = { id: kept.next_id++, text, keep, written_at: new Date().toISOString() }
      kept.notes.push(note)
      await save()
      return note
    },
    async archive(id) {
      const at = kept.notes.findIndex((note) => note.id === id)
      const [note] = kept.notes.splice(at, 1)
      await save()
      return note
    },
  }
}
