/** The scripts of the site registry: a site belongs to its first owner until it is deleted. */
import { listOf, parseFlag } from '../store/reply.js'
import { defineScript } from '../store/script.js'
import deleteLua from './delete.lua'
import putLua from './put.lua'

export const PUT_SITE = defineScript(
  'sites.put',
  {
    args: ['attempt', 'site', 'owner', 'declaration', 'max_per_owner', 'max_sites'],
    answer: (reply) => {
      const [head, isNew] = listOf(reply)
      return { head: String(head), isNew: isNew === 1 }
    },
  },
  putLua,
)

/** Deletes a site, of `owner` unless that is ''. Returns whether it existed. */
export const DELETE_SITE = defineScript(
  'sites.delete',
  { args: ['attempt', 'site', 'owner'], answer: parseFlag },
  deleteLua,
)
