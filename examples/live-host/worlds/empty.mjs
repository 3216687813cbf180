/** All facilities of one process, to which nothing has been written. */
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'

export async function open() {
  const facilities = createMemoryFacilities()
  return {
    about: 'one process with all facilities, to which nothing has been written',
    composition: memoryComposition(facilities),
    close: () => facilities.close(),
  }
}
