package faults

var serverClasses, redisClasses, storedClasses, mixedClasses []*class
