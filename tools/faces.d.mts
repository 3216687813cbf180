export const FACES: Record<string, string>
