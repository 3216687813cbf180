/** Values by id, at most `most`: the least recently used one is evicted. */
export function createCache<V>(most: number) {
  const values = new Map<string, V>()

  function set(id: string, value: V): void {
    values.delete(id)
    values.set(id, value)
    if (values.size > most) values.delete(values.keys().next().value as string)
  }

  return {
    get(id: string): V | undefined {
      const value = values.get(id)
      if (value !== undefined) set(id, value)
      return value
    },
    set,
  }
}
