package workload

// metro is a metropolitan statistical area of the contiguous United States:
// its name, where its people live (degrees, rounded to about a km), its
// population in 2016 in thousands (Census Bureau estimates), and what its
// clocks showed against UTC in September 2016, in hours. Centres of towns on a
// border or a coast are moved inland by a few km, to where most of the area's
// people are, so that the jitter stays in the country.
type metro struct {
	name       string
	lat, lon   float64
	population float64
	offset     int
}

// town returns the area as parameters have them.
func (m metro) town() Town {
	return Town{Name: m.name, Lat: m.lat, Lon: m.lon, Population: m.population, Offset: 60 * m.offset}
}

// metros are the largest areas and, so that no part of the country is empty,
// some smaller ones of the plains, the mountains and New England.
var metros = [...]metro{
	{"New York", 40.75, -73.97, 20154, -4},
	{"Los Angeles", 34.05, -118.20, 13311, -7},
	{"Chicago", 41.88, -87.75, 9513, -5},
	{"Dallas-Fort Worth", 32.80, -96.95, 7233, -5},
	{"Houston", 29.76, -95.40, 6772, -5},
	{"Washington", 38.91, -77.04, 6132, -4},
	{"Philadelphia", 39.98, -75.17, 6071, -4},
	{"Miami", 25.95, -80.28, 6066, -4},
	{"Atlanta", 33.80, -84.39, 5790, -4},
	{"Boston", 42.37, -71.17, 4794, -4},
	{"San Francisco-Oakland", 37.75, -122.18, 4679, -7},
	{"Phoenix", 33.45, -112.02, 4662, -7},
	{"Riverside-San Bernardino", 33.99, -117.37, 4528, -7},
	{"Detroit", 42.46, -83.22, 4298, -4},
	{"Seattle", 47.57, -122.20, 3799, -7},
	{"Minneapolis", 44.97, -93.25, 3551, -5},
	{"San Diego", 32.90, -117.08, 3318, -7},
	{"Tampa", 28.03, -82.47, 3032, -4},
	{"Denver", 39.72, -104.98, 2853, -6},
	{"St. Louis", 38.65, -90.32, 2807, -5},
	{"Baltimore", 39.30, -76.64, 2799, -4},
	{"Charlotte", 35.22, -80.84, 2474, -4},
	{"Orlando", 28.55, -81.38, 2441, -4},
	{"San Antonio", 29.45, -98.50, 2430, -5},
	{"Portland", 45.50, -122.68, 2425, -7},
	{"Pittsburgh", 40.44, -79.99, 2342, -4},
	{"Sacramento", 38.60, -121.43, 2296, -7},
	{"Cincinnati", 39.14, -84.50, 2165, -4},
	{"Las Vegas", 36.15, -115.16, 2156, -7},
	{"Kansas City", 39.07, -94.57, 2105, -5},
	{"Austin", 30.30, -97.74, 2056, -5},
	{"Cleveland", 41.43, -81.67, 2056, -4},
	{"Columbus", 39.98, -82.99, 2042, -4},
	{"Indianapolis", 39.79, -86.15, 2004, -4},
	{"San Jose", 37.32, -121.90, 1979, -7},
	{"Nashville", 36.13, -86.75, 1865, -5},
	{"Virginia Beach-Norfolk", 36.83, -76.22, 1727, -4},
	{"Providence", 41.82, -71.44, 1615, -4},
	{"Milwaukee", 43.04, -88.02, 1572, -5},
	{"Jacksonville", 30.31, -81.65, 1478, -4},
	{"Oklahoma City", 35.47, -97.52, 1374, -5},
	{"Memphis", 35.12, -89.93, 1343, -5},
	{"Raleigh", 35.80, -78.66, 1303, -4},
	{"Louisville", 38.22, -85.72, 1283, -4},
	{"Richmond", 37.53, -77.47, 1282, -4},
	{"New Orleans", 29.97, -90.12, 1269, -5},
	{"Hartford", 41.76, -72.70, 1206, -4},
	{"Salt Lake City", 40.69, -111.93, 1186, -6},
	{"Birmingham", 33.51, -86.81, 1147, -5},
	{"Buffalo", 42.92, -78.76, 1133, -4},
	{"Rochester", 43.13, -77.60, 1079, -4},
	{"Grand Rapids", 42.95, -85.66, 1047, -4},
	{"Tucson", 32.23, -110.94, 1016, -7},
	{"Tulsa", 36.13, -95.94, 987, -5},
	{"Fresno", 36.77, -119.79, 980, -7},
	{"Bridgeport", 41.25, -73.30, 944, -4},
	{"Worcester", 42.27, -71.81, 935, -4},
	{"Omaha", 41.25, -96.04, 924, -5},
	{"Albuquerque", 35.11, -106.62, 910, -6},
	{"Greenville", 34.85, -82.36, 885, -4},
	{"Bakersfield", 35.37, -119.03, 885, -7},
	{"Albany", 42.70, -73.80, 882, -4},
	{"Knoxville", 35.96, -83.94, 869, -4},
	{"New Haven", 41.38, -72.92, 857, -4},
	{"McAllen", 26.25, -98.20, 850, -5},
	{"Oxnard", 34.26, -119.05, 849, -7},
	{"El Paso", 31.86, -106.42, 841, -6},
	{"Allentown", 40.63, -75.45, 836, -4},
	{"Baton Rouge", 30.44, -91.12, 835, -5},
	{"Columbia", 34.02, -81.03, 817, -4},
	{"Dayton", 39.77, -84.18, 801, -4},
	{"Sarasota", 27.36, -82.45, 789, -4},
	{"Charleston", 32.88, -80.02, 761, -4},
	{"Greensboro", 36.07, -79.82, 757, -4},
	{"Little Rock", 34.74, -92.33, 735, -5},
	{"Stockton", 37.94, -121.28, 733, -7},
	{"Colorado Springs", 38.86, -104.77, 712, -6},
	{"Boise", 43.61, -116.30, 691, -6},
	{"Syracuse", 43.06, -76.15, 656, -4},
	{"Madison", 43.07, -89.40, 649, -5},
	{"Wichita", 37.69, -97.33, 644, -5},
	{"Des Moines", 41.59, -93.66, 634, -5},
	{"Jackson", 32.33, -90.17, 579, -5},
	{"Spokane", 47.67, -117.40, 556, -7},
	{"Chattanooga", 35.06, -85.26, 551, -4},
	{"Portland (Maine)", 43.68, -70.34, 530, -4},
	{"Reno", 39.53, -119.80, 458, -7},
	{"Mobile", 30.69, -88.15, 414, -5},
	{"Sioux Falls", 43.54, -96.73, 255, -5},
	{"Fargo", 46.86, -96.80, 238, -5},
	{"Burlington", 44.48, -73.14, 217, -4},
	{"Billings", 45.78, -108.54, 169, -6},
	{"Rapid City", 44.07, -103.22, 145, -6},
}
